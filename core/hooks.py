"""How a lower room asks or tells higher rooms: it declares a hook, they join it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Hook(Generic[P, R]):
    """A question or a message to the rooms above, declared where it is asked.

    `Hook[[int], tuple[str, ...]]("folders that work opens")`: a higher room joins in its
    `AppConfig.ready` with `hook.join(function)`; calling the hook calls every function that joined,
    in the order they joined, and returns their answers. What one of them raises reaches the caller.
    """

    def __init__(self, purpose: str) -> None:
        self.purpose = purpose
        self._joined: list[Callable[P, R]] = []

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> list[R]:
        """Call every function that joined and return their answers."""
        return [function(*args, **kwargs) for function in self._joined]

    def join(self, function: Callable[P, R]) -> Callable[P, R]:
        """Add a function, once, however often it joins; usable as a decorator."""
        if function not in self._joined:
            self._joined.append(function)
        return function

    def leave(self, function: Callable[P, R]) -> None:
        """Remove a function that joined; for tests."""
        self._joined.remove(function)
