#!/bin/sh
# prune-backups.sh FOLDER: remove copies that are older than two weeks, but never the newest eight.
# By a clock that jumped ahead every copy is old, and while none can be made the old ones are all.
# What was named by hand, as before-upgrade, stays.
set -eu
cd "$1"
find . -mindepth 1 -maxdepth 1 -type d -name '20*[0-9]' | sort -r | tail -n +9 |
    xargs -r -I '{}' find '{}' -maxdepth 0 -mtime +14 -exec rm -r '{}' ';'
# Halves of backups that were killed: no later one has their name.
find . -mindepth 1 -maxdepth 1 -type d -name '20*.part' -mtime +2 -exec rm -r '{}' ';'
