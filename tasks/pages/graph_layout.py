"""The layout of a drawing of dependencies: layers from left to right; pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

BOX_WIDTH, BOX_HEIGHT = 196, 80
ACROSS, BETWEEN, MARGIN = 44, 18, 8
SWEEPS = 6

Edge = tuple[int, int]
"""A task and a task that waits for it."""
Slot = Hashable
"""What has a place in a layer: a task, or the bend of a line that crosses the layer."""


@dataclass(frozen=True, slots=True)
class BoxPlace:
    """The upper left corner of a task's box, in pixels."""

    x: int
    y: int


@dataclass(frozen=True, slots=True)
class GraphLine:
    """One drawn dependency: its ends, and its way as the `d` of an SVG path."""

    before: int
    after: int
    way: str


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """A drawing: boxes that never overlap, lines that all run to the right.

    `implied` counts the dependencies that follow from others and are therefore not drawn.
    """

    spots: Mapping[int, BoxPlace]
    lines: tuple[GraphLine, ...]
    width: int
    height: int
    implied: int


def lay_out(focus: int, edges: Iterable[Edge]) -> GraphLayout:
    """Place a task, what it waits for to its left, and what waits for it to its right.

    Tasks that are not connected to `focus` by dependencies are left out.
    """
    layers = layers_of(focus, list(edges))
    within = sorted({(a, b) for a, b in edges if a in layers and b in layers})
    drawn = [edge for edge in within if not _is_implied(edge, within)]
    ways = {edge: _slots_between(edge, layers) for edge in drawn}
    columns = _columns(layers, ways.values())
    near = _neighbours(ways.values())
    _order(columns, near)
    heights = _heights(columns, near, layers[focus])
    top = min(height - _tall(slot) / 2 for slot, height in heights.items()) - MARGIN
    bottom = max(height + _tall(slot) / 2 for slot, height in heights.items()) + MARGIN
    first = min(layers.values())
    lefts = {layer: MARGIN + (layer - first) * (BOX_WIDTH + ACROSS) for layer in columns}
    spots = {
        task: BoxPlace(lefts[layer], round(heights[task] - BOX_HEIGHT / 2 - top))
        for task, layer in layers.items()
    }
    lines = []
    for edge, way in ways.items():
        begin = layers[edge[0]]
        stops = [(lefts[begin + n], round(heights[slot] - top)) for n, slot in enumerate(way)]
        lines.append(GraphLine(*edge, _way(stops)))
    return GraphLayout(
        spots=spots,
        lines=tuple(lines),
        width=max(spot.x for spot in spots.values()) + BOX_WIDTH + MARGIN,
        height=round(bottom - top),
        implied=len(within) - len(drawn),
    )


def layers_of(focus: int, edges: Sequence[Edge]) -> dict[int, int]:
    """The layer of each task: 0 for `focus`, below for what it waits for, above for what waits.

    The number is that of the longest way, so that every line runs from a lower to a higher layer.
    """
    ahead = _longest(focus, [(b, a) for a, b in edges])
    behind = _longest(focus, edges)
    return {task: -far for task, far in ahead.items()} | behind


def _longest(start: int, edges: Sequence[Edge]) -> dict[int, int]:
    """How many steps the longest way to each task has; wave after wave, the last one counts."""
    found, wave = {start: 0}, {start}
    for step in range(1, len(edges) + 1):
        wave = {b for a, b in edges if a in wave}
        found |= dict.fromkeys(wave, step)
    return found


def _is_implied(edge: Edge, edges: Sequence[Edge]) -> bool:
    """Whether another way leads from the one end to the other."""
    reached = {b for a, b in edges if a == edge[0] and b != edge[1]}
    grown = True
    while grown and edge[1] not in reached:
        more = reached | {b for a, b in edges if a in reached}
        grown, reached = len(more) > len(reached), more
    return edge[1] in reached


def _slots_between(edge: Edge, layers: Mapping[int, int]) -> list[Slot]:
    """Both ends, and a bend in every layer that the line passes."""
    passed = range(layers[edge[0]] + 1, layers[edge[1]])
    return [edge[0], *((*edge, layer) for layer in passed), edge[1]]


def _columns(layers: Mapping[int, int], ways: Iterable[Sequence[Slot]]) -> dict[int, list[Slot]]:
    found: dict[int, list[Slot]] = {layer: [] for layer in sorted(set(layers.values()))}
    for task in sorted(layers):
        found[layers[task]].append(task)
    for way in ways:
        for slot in way[1:-1]:
            found[slot[2]].append(slot)  # type: ignore[index]  # a bend names its layer
    return found


def _neighbours(ways: Iterable[Sequence[Slot]]) -> tuple[dict[Slot, list[Slot]], ...]:
    """Of each slot: those to its left, and those to its right."""
    left: dict[Slot, list[Slot]] = {}
    right: dict[Slot, list[Slot]] = {}
    for way in ways:
        for a, b in pairwise(way):
            right.setdefault(a, []).append(b)
            left.setdefault(b, []).append(a)
    return left, right


def _order(columns: dict[int, list[Slot]], near: tuple[dict[Slot, list[Slot]], ...]) -> None:
    """Put each slot at the mean place of its neighbours, sweep after sweep: fewer crossings."""
    for sweep in range(SWEEPS):
        linked = near[sweep % 2]
        layers = list(columns) if sweep % 2 == 0 else list(reversed(columns))
        for before, layer in pairwise(layers):
            at = {slot: place for place, slot in enumerate(columns[before])}
            own: dict[Slot, float] = {}
            for place, slot in enumerate(columns[layer]):
                places = [at[other] for other in linked.get(slot, ())]
                own[slot] = sum(places) / len(places) if places else place
            columns[layer].sort(key=own.__getitem__)


def _heights(
    columns: Mapping[int, list[Slot]], near: tuple[dict[Slot, list[Slot]], ...], middle: int
) -> dict[Slot, float]:
    """The middle of each slot, so that lines are as straight as boxes allow."""
    found: dict[Slot, float] = {}
    for slots in columns.values():
        found |= _spread(slots, [0.0] * len(slots))
    left, right = near
    after, ahead = [n for n in columns if n > middle], [n for n in columns if n < middle]
    outward = [(n, left) for n in after] + [(n, right) for n in reversed(ahead)]
    inward = [(n, right) for n in (*reversed(after), middle)]
    inward += [(n, left) for n in (*ahead, middle)]
    for sweep in range(SWEEPS + 1):
        for layer, linked in outward if sweep % 2 == 0 else inward:
            slots = columns[layer]
            wanted = [
                sum(found[other] for other in linked[slot]) / len(linked[slot])
                if slot in linked
                else found[slot]
                for slot in slots
            ]
            found |= _spread(slots, wanted)
    return found


def _spread(slots: Sequence[Slot], wanted: Sequence[float]) -> dict[Slot, float]:
    """Heights as near to the wanted ones as they can be in this order without overlaps.

    The least squares under an order are the means of pooled neighbours.
    """
    offsets = [0.0]
    for one, other in pairwise(slots):
        offsets.append(offsets[-1] + (_tall(one) + _tall(other)) / 2 + BETWEEN)
    pools: list[tuple[float, int]] = []
    for want, offset in zip(wanted, offsets, strict=False):
        total, count = want - offset, 1
        while pools and pools[-1][0] / pools[-1][1] >= total / count:
            more, others = pools.pop()
            total, count = total + more, count + others
        pools.append((total, count))
    means = [total / count for total, count in pools for _ in range(count)]
    return {s: mean + o for s, mean, o in zip(slots, means, offsets, strict=True)}


def _tall(slot: Slot) -> int:
    return BOX_HEIGHT if isinstance(slot, int) else 0


def _way(stops: Sequence[tuple[int, int]]) -> str:
    """From the right side of the first stop to the left side of the last, level at each."""
    (left, y), *others = stops
    x = left + BOX_WIDTH
    way = f"M{x} {y}"
    for place, (left, there) in enumerate(others):
        bend = (x + left) // 2
        way += f"C{bend} {y} {bend} {there} {left} {there}"
        x, y = left + BOX_WIDTH, there
        if place < len(others) - 1:
            way += f"H{x}"
    return way
