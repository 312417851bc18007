"""Model checking: every reachable state, every actor, every act, every interleaving of two."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from governance.cases.facts import FINAL
from governance.cases.moves import MOVES
from governance.cases.vocabulary import State
from tests.governance.cases.model import ACTS, World, invariants, moves_from, step

MOST_ROUND = 4  # the fourth is the overflow of three


def key(world):
    """States that no rule tells apart: the past of earlier rounds decides nothing."""
    at, record = world.at, world.facts.record
    ignored = {n for n in world.ignored if n > at.ruled_round or record.violated}
    violations = (world.owed, frozenset(ignored)) if at.state not in FINAL else ()
    return (at, record.in_force, record.review, record.test, record.overruled, record.amended,
            record.submitted, record.must_reject, violations)  # fmt: skip


def reachable():
    """Every state within the rounds."""
    first = World()
    seen, queue = {key(first): first}, [first]
    while queue:
        world = queue.pop()
        for to in results(moves_from(world)):
            if to.at.round > MOST_ROUND or to.at.max_rounds > MOST_ROUND:
                continue
            invariants(to)
            if key(to) not in seen:
                seen[key(to)] = to
                queue.append(to)
    return seen


def results(moves):
    """What moves lead to, each once: most of the many illegal acts do the same."""
    return dict.fromkeys(to for _, to in moves)


class TestTheWholeSpace:
    def test_holds_every_invariant_in_every_state(self, capsys):
        seen = reachable()
        states = {world.at.state for world in seen.values()}
        edges = interleavings = 0
        positions = {}
        for world in seen.values():
            moves = moves_from(world)
            edges += len(moves)
            if world.at.state in FINAL:
                assert not moves, "what has ended does not change"
            for act, to in moves:
                assert declared(world.at, to.at), (act, world.at, to.at)
            positions.setdefault(world.at, (world, moves))
        for _, moves in positions.values():
            for first, (second, _) in itertools.product(results(moves), moves):
                after = step(first, second)
                interleavings += 1
                if after is not None:
                    invariants(after)
        assert states == set(State)
        signals = {world.facts.record.must_reject for world in seen.values()}
        assert len(signals) == 4, "each failure signal alone, both and none"
        with capsys.disabled():
            print(f"\n{len(seen)} states, {edges} steps, {interleavings} interleavings of two")


def declared(before, after):
    """Whether the table of moves has a path for the change."""
    return any(
        before.state in path.states
        and before.stage in path.stages
        and after.state in path.to_states
        and (after.stage in path.to_stages or (not path.to_stages and after.stage is before.stage))
        for path in MOVES.values()
    )


class TestAnyWalk:
    @settings(max_examples=300, deadline=None)
    @given(st.lists(st.sampled_from(ACTS), max_size=60))
    def test_never_delivers_without_review_and_test_of_the_round(self, walk):
        world = World()
        for act in walk:
            world = step(world, act) or world
            invariants(world)

    @settings(max_examples=200, deadline=None)
    @given(st.data())
    def test_of_allowed_acts_keeps_every_invariant(self, data):
        world = World()
        for _ in range(25):
            moves = [to for _, to in moves_from(world)]
            if not moves:
                break
            going = [to for to in moves if to.at.state is not State.STOPPED] or moves
            world = data.draw(st.sampled_from(going))
            invariants(world)
