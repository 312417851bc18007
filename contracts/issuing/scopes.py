"""Which folders a contract may open to its assignee; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.decision import Allow, Code, Decision, Deny, deny
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.parties import Party
from orgchart.policy.paths import denying_pattern, expand, normal_path
from orgchart.policy.vocabulary import Kind


def can_give_scope(
    paths: Sequence[str], issuer: Party, assignee: Agent, policy: Policy
) -> Decision:
    """Decide whether a contract may open these folders to its assignee.

    Plain relative paths; never what the role of either is denied, another agent's home, or what
    managers and the top keep or read: a contract gives folders of work, not rights of others.
    """
    allowed = Allow("workspace_scope")
    if not paths:
        return allowed
    reserved = _Reserved(assignee, policy)
    for path in paths:
        normal = normal_path(path)
        if isinstance(normal, Deny):
            return normal
        caught = (
            _denied(normal, assignee, policy)
            or (isinstance(issuer, Agent) and _denied(normal, issuer, policy))
            or reserved.scope_at(normal)
        )
        if caught:
            return deny(
                Code.SCOPE_DENIED,
                f"{normal} cannot be in a workspace scope: {caught} is not given to "
                f"{assignee.handle}",
                "name the folders of the work itself, such as src/server/",
                rule="a contract opens folders of work (spec: contracts 31)",
            )
    return allowed


def _denied(path: str, agent: Agent, policy: Policy) -> str:
    """The denied path of the agent's role that the folder is, is inside, or contains."""
    denied = expand(policy.role_of(agent).files.deny, agent)
    return denying_pattern(path, denied) or next(
        (folder for folder in denied if folder.endswith("/") and _covers(path, folder)), ""
    )


class _Reserved:
    """What managers and the top keep or read, and the homes of others: looked up by folder."""

    def __init__(self, assignee: Agent, policy: Policy) -> None:
        self._own = expand(policy.role_of(assignee).files.write, assignee)
        self._scopes: dict[tuple[str, ...], str] = {}
        self._around: dict[tuple[str, ...], str] = {}
        for scope in _scopes_of_others(assignee, policy):
            parts = _parts(scope)
            self._scopes.setdefault(parts, scope)
            for folder in _folders(parts):
                self._around.setdefault(folder, scope)

    def scope_at(self, path: str) -> str:
        """The scope of others that a folder is, is inside, or contains; '' also in one's own."""
        parts = _parts(path)
        found = (self._scopes.get(folder) for folder in _folders(parts))
        scope = next(filter(None, found), "") or self._around.get(parts, "")
        return "" if any(_covers(mine, path) for mine in self._own) else scope


def _scopes_of_others(assignee: Agent, policy: Policy) -> Iterator[str]:
    for role in policy.roles.values():
        if role.kind is not Kind.WORKER and role.name != assignee.role:
            files = role.files
            yield from (s for s in files.write + files.read if "{" not in s)
    for agent in policy.agents.values():
        if agent.handle != assignee.handle:
            files = policy.role_of(agent).files
            yield from expand([s for s in files.read + files.write if "{" in s], agent)


def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.casefold().rstrip("/").split("/"))


def _folders(parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Every folder around a path, and the path itself."""
    return (parts[:end] for end in range(1, len(parts) + 1))


def _covers(outer: str, inner: str) -> bool:
    folder = _parts(outer)
    return _parts(inner)[: len(folder)] == folder
