"""Paths that are denied to every role, whatever a pack or a person writes (Spec: files 3)."""

from __future__ import annotations

PROTECTED = (
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "credentials*",
    "secrets*",
    ".git-credentials",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".ssh",
    ".aws",
    ".gnupg",
    ".kube",
    ".git",
)
"""Environment files, keys, credentials, and git's own folder."""

CI_TOOL = "manage_ci_config"
"""The tool of the roles that change CI files."""

PROTECTED_CI = (".github/", ".gitlab-ci.yml", ".circleci/", "Jenkinsfile")
"""CI files: no role without `CI_TOOL` writes them."""

HOMES, HOME = "agents/", "agents/{agent}/"
"""Where agents' homes are, and the only one that a role's scope can name."""

CLONE, JUDGED = "workspace", "judged"
"""Folders of a home: the agent's clone of the repository, copies of the commits that it judges."""

NOT_NAMED = (f"{HOME}{JUDGED}/", f"{HOME}MEMORY.md")
"""What no path names: `read_file` and runs take files of a judged commit by their own path, and a
memory has tools of its own; its file is for people, and may hold what they withdrew.
"""


def with_protected(denied: tuple[str, ...]) -> tuple[str, ...]:
    """A role's denied paths, and those that are denied to every role."""
    return (*denied, *(pattern for pattern in PROTECTED if pattern not in denied))


def protected_from_writing(tools: frozenset[str]) -> tuple[str, ...]:
    """What a role with these tools never writes."""
    return () if CI_TOOL in tools else PROTECTED_CI
