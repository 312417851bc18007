"""The folders that an agent's work opens to a call."""

from core.hooks import Hook
from toolbox.caller import Caller

work_scopes = Hook[[Caller], tuple[str, ...]]("folders and files that an agent's work opens to it")


def active_scopes(caller: Caller) -> tuple[str, ...]:
    """Folders and files that the caller's work opens in this session, each ending in '/'."""
    return tuple(
        scope if scope.endswith("/") else f"{scope}/"
        for scopes in work_scopes(caller)
        for scope in scopes
    )
