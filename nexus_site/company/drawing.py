"""Where each agent is drawn: a tidy tree, its leaves stacked below their manager; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 216, 84
"""Pixels of one card."""
ACROSS, DOWN, STACKED, INDENT = 24, 44, 12, 20
"""Pixels between cards side by side, between levels, between stacked leaves, and their shift."""


@dataclass(frozen=True, slots=True)
class CardPlace:
    """The upper left corner of an agent's card, and how deep it is under the Board."""

    name: str
    x: int
    y: int
    depth: int


@dataclass(frozen=True, slots=True)
class Line:
    """One line from a superior to an agent, as the path of an SVG."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """The cards in reading order (each after its superior), the lines, and the size in pixels."""

    places: Sequence[CardPlace]
    lines: Sequence[Line]
    width: int
    height: int


def nearest(
    root: str, below: Mapping[str, Sequence[str]], most: int
) -> tuple[dict[str, list[str]], dict[str, int]]:
    """The tree cut to the agents nearest to the root, and how many are missing below each."""
    shown: dict[str, list[str]] = {}
    hidden: dict[str, int] = {}
    level, seen = [root], {root}
    while level:
        following: list[str] = []
        for name in level:
            children = [child for child in below.get(name, ()) if child not in seen]
            kept = children[: max(0, most - len(seen))]
            seen.update(kept)
            if kept:
                shown[name] = kept
            if len(children) > len(kept):
                hidden[name] = len(children) - len(kept)
            following += kept
        level = following
    return shown, hidden


def draw(root: str, below: Mapping[str, Sequence[str]]) -> Drawing:
    """Place the tree under `root`; an agent that is reached twice is drawn once."""
    return _Artist(below).draw(root)


class _Artist:
    def __init__(self, below: Mapping[str, Sequence[str]]) -> None:
        self.below = below
        self.places: dict[str, CardPlace] = {}
        self.lines: list[Line] = []
        self.seen: set[str] = set()

    def draw(self, root: str) -> Drawing:
        width = self._draw_tree(root, 0, 0, 0)
        height = max(place.y for place in self.places.values()) + HEIGHT
        order = list(self._in_order(root))
        return Drawing(places=order, lines=self.lines, width=width, height=height)

    def _in_order(self, name: str) -> list[CardPlace]:
        place = self.places.pop(name, None)
        if place is None:
            return []
        return [place, *(p for child in self.below.get(name, ()) for p in self._in_order(child))]

    def _draw_tree(self, name: str, x: int, y: int, depth: int) -> int:
        """Draw a subtree from x on; its width."""
        self.seen.add(name)
        children = [c for c in self.below.get(name, ()) if c not in self.seen]
        self.seen.update(children)
        leaves = [c for c in children if not self.below.get(c)]
        if len(leaves) == len(children) and depth:
            return self._stack(name, leaves, x, y, depth)
        width, middles = 0, list[tuple[str, int]]()
        for child in children:
            width += ACROSS if width else 0
            left = x + width
            width += self._draw_tree(child, left, y + HEIGHT + DOWN, depth + 1)
            middles.append((child, self.places[child].x + WIDTH // 2))
        middle = (middles[0][1] + middles[-1][1]) // 2 if middles else x + WIDTH // 2
        self.places[name] = CardPlace(name, middle - WIDTH // 2, y, depth)
        bottom = y + HEIGHT
        for _, at in middles:
            turn = bottom + DOWN // 2
            self.lines.append(Line(f"M{middle} {bottom}V{turn}H{at}V{bottom + DOWN}"))
        return max(width, WIDTH)

    def _stack(self, name: str, leaves: Sequence[str], x: int, y: int, depth: int) -> int:
        """A manager whose agents lead no others: they are drawn below each other."""
        self.places[name] = CardPlace(name, x, y, depth)
        spine = x + INDENT // 2
        for number, leaf in enumerate(leaves):
            top = y + HEIGHT + DOWN // 2 + number * (HEIGHT + STACKED)
            self.places[leaf] = CardPlace(leaf, x + INDENT, top, depth + 1)
            self.lines.append(Line(f"M{spine} {y + HEIGHT}V{top + HEIGHT // 2}H{x + INDENT}"))
        return WIDTH + (INDENT if leaves else 0)
