"""The folders that an agent's work in progress opens to it."""

from core.hooks import Hook

work_scopes = Hook[[int], tuple[str, ...]]("folders and files that an agent's work opens to it")


def active_scopes(agent_id: int) -> tuple[str, ...]:
    """Folders and files that the agent's work in progress opens, each ending in '/'."""
    return tuple(
        scope if scope.endswith("/") else f"{scope}/"
        for scopes in work_scopes(agent_id)
        for scope in scopes
    )
