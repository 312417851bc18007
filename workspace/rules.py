"""What hands may touch: branches, environments, addresses; pure."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import urlsplit

from contracts.branches import branch_problem, visible_text
from core.addresses import address_of, is_public
from core.decision import Allow, Code, Decision, deny

FREE_ENVIRONMENTS = frozenset({"dev", "development", "test", "testing", "staging"})
"""Environments that need no approval; whatever is not among them is treated as production."""

LOCAL_NAMES = re.compile(r"(^|\.)(localhost|local|localdomain|internal|intranet|lan|home|corp)\.?$")


def can_use_branch(name: str, assigned: str) -> Decision:
    """Decide whether git may work on this branch: the contract's own, in its one spelling.

    Spec: hands 1.

    `assigned` is the branch of the one contract that the agent works under, or ''.
    """
    problem = branch_problem(name)
    if problem:
        return _branch_denied(f"{name[:200]!r}: {problem}", assigned)
    if not assigned or name != assigned:
        return _branch_denied(f"{name} is not the branch of the contract you work under", assigned)
    return Allow("assigned_branch (spec: hands 1)")


def can_commit(assigned: str) -> Decision:
    """Decide whether git may commit at all: only on the branch that a contract assigns.

    Spec: hands 1.
    """
    if assigned:
        return Allow("assigned_branch (spec: hands 1)")
    return _branch_denied("the contract you work under assigns no branch", assigned)


def environment_of(name: str) -> str:
    """The one spelling of an environment's name."""
    return visible_text(name)


def needs_approval(environment: str) -> bool:
    """Whether a deployment there needs the IT manager's approval (Spec: contracts 16).

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


def _branch_denied(problem: str, assigned: str) -> Decision:
    return deny(
        Code.BRANCH_DENIED,
        f"the branch is refused: {problem}",
        f"work on {assigned}"
        if assigned
        else "accept a contract that assigns a branch (list_contracts shows yours)",
        rule="git works on the contract's branch only (spec: hands 1)",
        assigned=[assigned] if assigned else [],
    )
