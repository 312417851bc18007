"""Counts the steps that Python's `re` would take: how much work a hostile text makes a pattern."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from re import _compiler, _parser  # type: ignore[attr-defined]
from re._constants import (  # type: ignore[import-not-found]
    ASSERT,
    ASSERT_NOT,
    AT,
    ATOMIC_GROUP,
    BRANCH,
    GROUPREF,
    MAX_REPEAT,
    MAXREPEAT,
    MIN_REPEAT,
    POSSESSIVE_REPEAT,
    SUBPATTERN,
)

Next = Callable[[int], bool]
REPEATS = (MAX_REPEAT, MIN_REPEAT, POSSESSIVE_REPEAT)


class TooManySteps(Exception):
    """The text makes the pattern work longer than allowed."""


class Counter:
    """A backtracking match, done slowly and counted."""

    def __init__(self, pattern: "re.Pattern[str]", text: str, most: int) -> None:
        self.flags, self.text, self.left = pattern.flags, text, most
        self.items = list(_parser.parse(pattern.pattern, pattern.flags))

    def search(self) -> None:
        """Try every place, as `search`, `sub` and `findall` do."""
        for place in range(len(self.text) + 1):
            if self.match(place):
                return

    def match(self, place: int = 0) -> bool:
        """Try one place. Raises TooManySteps."""
        return self._run(self.items, place, lambda _: True)

    def fullmatch(self) -> None:
        """Try the first place, to the end of the text."""
        self._run(self.items, 0, lambda end: end == len(self.text))

    def _step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooManySteps

    def _run(self, items: list, at: int, then: Next) -> bool:  # noqa: PLR0911  one for each kind
        if not items:
            return then(at)
        self._step()
        (op, value), rest = items[0], items[1:]
        after: Next = lambda end: self._run(rest, end, then)  # noqa: E731
        if op in REPEATS:
            return self._repeat(op, value, at, after)
        if op is BRANCH:
            return any(self._run(list(branch), at, after) for branch in value[1])
        if op is SUBPATTERN:
            return self._run(list(value[3]), at, after)
        if op is ATOMIC_GROUP:
            ends = self._ends(list(value), at)
            return ends is not None and after(ends)
        if op in (ASSERT, ASSERT_NOT):
            direction, inner = value
            width = inner.getwidth()[0] if direction < 0 else 0
            found = at >= width and self._run(list(inner), at - width, lambda _: True)
            return found == (op is ASSERT) and after(at)
        if op is AT or op is GROUPREF:
            return bool(one(op, value, self.flags).match(self.text, at)) and after(at)
        if at < len(self.text) and one(op, value, self.flags).match(self.text, at, at + 1):
            return after(at + 1)
        return False

    def _ends(self, items: list, at: int) -> int | None:
        found: list[int] = []
        self._run(items, at, lambda end: not found.append(end))  # type: ignore[func-returns-value]
        return found[0] if found else None

    def _repeat(self, op: object, value: tuple, at: int, after: Next) -> bool:
        least, most, inner = value
        items = list(inner)
        places = [at]
        if _compiler._simple(inner):  # as the engine itself decides
            return self._repeat_one(op, value, at, after)
        if op is POSSESSIVE_REPEAT:
            while len(places) <= most:
                end = self._ends(items, places[-1])
                if end is None or end == places[-1]:
                    break
                places.append(end)
            return len(places) > least and after(places[-1])

        def again(count: int, here: int) -> bool:
            self._step()
            more: Next = lambda end: end > here and again(count + 1, end)  # noqa: E731
            if op is MIN_REPEAT and count >= least and after(here):
                return True
            if (most is MAXREPEAT or count < most) and self._run(items, here, more):
                return True
            return op is MAX_REPEAT and count >= least and after(here)

        return again(0, at)

    def _repeat_one(self, op: object, value: tuple, at: int, after: Next) -> bool:
        least, most, inner = value
        single = one(*inner[0], self.flags)
        limit = len(self.text) if most is MAXREPEAT else min(len(self.text), at + most)
        end = at
        while end < limit and single.match(self.text, end, end + 1):
            self._step()
            end += 1
        ends = range(at + least, end + 1)
        order = ends if op is MIN_REPEAT else reversed(ends)
        if op is POSSESSIVE_REPEAT:
            order = iter(ends[-1:])  # type: ignore[assignment]
        for each in order:
            self._step()
            if after(each):
                return True
        return False


def one(op: object, value: object, flags: int) -> "re.Pattern[str]":
    """The pattern of one character or place."""
    return _one(op, repr(value), flags, Held(value))


class Held:
    """A value that takes no part in a comparison."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held)

    def __hash__(self) -> int:
        return 0


@cache
def _one(op: object, _: str, flags: int, held: Held) -> "re.Pattern[str]":
    state = _parser.State()
    state.flags = flags
    return _compiler.compile(_parser.SubPattern(state, [(op, held.value)]), flags)


def hostile_texts(pattern: "re.Pattern[str]", size: int) -> Iterator[str]:
    """Repetitions of one or two of its characters and of its own literals, with a wrong end."""
    own = re.findall(r"[^\w\\^|+*?{}]", pattern.pattern)
    letters = list(dict.fromkeys(["a", "0", " ", "\n", "\\", *own]))[:12]
    words = re.findall(r"[^\\()\[\]?*+{}|^$]{2,}", pattern.pattern)[:4]
    pumps = [*letters, *(a + b for a in letters for b in letters[:5] if a != b), *words]
    for pump in pumps:
        for start in dict.fromkeys(["", *words[:1], *own[:1]]):
            for end in ("", "\0", "\n"):
                yield start + (pump * size)[:size] + end
