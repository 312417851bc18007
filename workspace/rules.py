"""What hands may touch: branches, environments, addresses; pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from urllib.parse import urlsplit

from contracts.terms import BRANCH, PROTECTED_BRANCHES, REF_FOLDERS
from core.addresses import address_of, is_public
from core.decision import Allow, Code, Decision, deny

FREE_ENVIRONMENTS = frozenset({"dev", "development", "test", "testing", "staging"})
"""Environments that need no approval; whatever is not among them is treated as production."""

LOCAL_NAMES = re.compile(r"(^|\.)(localhost|local|localdomain|internal|intranet|lan|home|corp)\.?$")


def can_use_branch(name: str, assigned: Sequence[str]) -> Decision:
    """Decide whether git may work on this branch: the contract's own, in its one spelling (§1.6).

    `assigned` are the branches of the agent's contracts in progress.
    """
    if is_protected(name):
        return _branch_denied(
            f"{name[:200]!r} is protected: nobody pushes to main, master or production", assigned
        )
    if not is_plain(name):
        return _branch_denied(f"{name[:200]!r} is no plain branch name", assigned)
    if name not in assigned:
        return _branch_denied(f"{name} is not the branch of a contract of yours", assigned)
    return Allow("assigned_branch (seed 000 §1.6)")


def can_commit(assigned: Sequence[str]) -> Decision:
    """Decide whether git may commit at all: only on a branch that a contract assigns (§1.6)."""
    if assigned:
        return Allow("assigned_branch (seed 000 §1.6)")
    return _branch_denied("no contract of yours in progress assigns a branch", assigned)


def is_plain(name: str) -> bool:
    """Whether the name is a branch and nothing else: no option, refspec, ref path or odd sign."""
    parts = name.casefold().split("/")
    return (
        BRANCH.match(name) is not None
        and ".." not in name
        and parts[0] not in REF_FOLDERS
        and all(p and not p.startswith(".") and not p.endswith((".", ".lock")) for p in parts)
    )


def is_protected(name: str) -> bool:
    """Whether the name ends in a protected branch by any spelling: case, ref path, refspec."""
    spelled = plain_text(name).lstrip("+")
    target = spelled.rpartition(":")[2]
    parts = [part for part in target.split("/") if part]
    while parts and parts[0] in REF_FOLDERS:
        parts = parts[1:]
    return "/".join(parts) in PROTECTED_BRANCHES


def plain_text(name: str) -> str:
    """A name without what the eye does not see: case, width, spaces, control and format signs."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(c for c in folded if unicodedata.category(c)[0] not in "CZ")


def environment_of(name: str) -> str:
    """The one spelling of an environment's name."""
    return plain_text(name)


def needs_approval(environment: str) -> bool:
    """Whether a deployment there needs the IT manager's approval (seed 000 §1.8).

    Production does; so does every name that is not known to be something less.
    """
    return environment not in FREE_ENVIRONMENTS


def can_fetch(url: str) -> Decision:
    """Decide whether an address may be read: http or https, outside this machine and network.

    Names are decided here by what they say; what they resolve to is the driver's to check.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        odd = parts.scheme not in ("http", "https") or not host or parts.username is not None
        _ = parts.port
    except ValueError:
        host, odd = "", True
    if odd or unicodedata.normalize("NFKC", host) != host or not url.isprintable():
        return deny(
            Code.INVALID_PARAMS,
            "url: must be a plain http or https address without a name and password",
            "give an address such as https://example.org/page",
            rule="addresses that may be read",
            url="must be a plain http or https address",
        )
    number = address_of(host)
    named_inside = "." not in host.strip(".") or LOCAL_NAMES.search(host)
    if named_inside if number is None else not is_public(number):
        return _internal(host)
    return Allow("a public address")


def _internal(host: str) -> Decision:
    return deny(
        Code.SCOPE_DENIED,
        f"{host[:200]} is inside this machine or its network",
        "read a public address",
        rule="addresses that may be read",
    )


def _branch_denied(problem: str, assigned: Sequence[str]) -> Decision:
    return deny(
        Code.BRANCH_DENIED,
        f"the branch is refused: {problem}",
        f"work on {' or '.join(assigned)}"
        if assigned
        else "accept a contract that assigns a branch (list_contracts shows yours)",
        rule="git works on the contract's branch only (seed 000 §1.6)",
        assigned=list(assigned),
    )
