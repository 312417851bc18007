#!/bin/sh
# Installed by NEXUS in its bare repositories (Spec: hands 2). Accepts one update only: of the
# branch that the control plane names in NEXUS_BRANCH, which is never a protected one. Agents write
# neither this file nor its environment, and nothing in a pushed commit is read.
set -u
refuse() {
    echo "NEXUS: $1 is refused: $2" >&2
    exit 1
}
main=$(git symbolic-ref --short HEAD) || refuse "the push" "the repository has no main branch"
count=0
while read -r old new ref; do
    count=$((count + 1))
    case $ref in
        refs/heads/*) name=${ref#refs/heads/} ;;
        *) refuse "$ref" "only branches are pushed" ;;
    esac
    lowered=$(printf '%s' "$name" | LC_ALL=C tr '[:upper:]' '[:lower:]')
    case $lowered in
        main | master | production | head | */head) refuse "$name" "it is protected" ;;
        refs/* | heads/* | tags/* | remotes/* | origin/*) refuse "$name" "it is protected" ;;
        -* | *[!a-z0-9._/-]*) refuse "$name" "it is not a plain branch name" ;;
    esac
    [ "$lowered" != "$(printf '%s' "$main" | LC_ALL=C tr '[:upper:]' '[:lower:]')" ] ||
        refuse "$name" "it is protected"
    [ "$name" = "${NEXUS_BRANCH-}" ] || refuse "$name" "no contract assigns it"
    case $new in
        *[!0]*) ;;
        *) refuse "$name" "branches are not deleted" ;;
    esac
done
[ "$count" -eq 1 ] || refuse "the push" "one branch is pushed at a time"
