"""Which folders an agent's contracts open to it right now; contracts answer, other rooms ask."""

from __future__ import annotations

from collections.abc import Callable

ScopeSource = Callable[[int], tuple[str, ...]]

_sources: list[ScopeSource] = []


def register(source: ScopeSource) -> None:
    """Add a source: agent id → folders of its work in progress."""
    if source not in _sources:
        _sources.append(source)


def active_scopes(agent_id: int) -> tuple[str, ...]:
    """Folders and files that the agent's work in progress opens, each ending in '/'."""
    return tuple(
        scope if scope.endswith("/") else f"{scope}/"
        for source in _sources
        for scope in source(agent_id)
    )
