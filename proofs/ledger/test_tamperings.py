"""10,000 tamperings by a superuser: each is found where it is, or is the documented limit."""

from collections import Counter
from collections.abc import Iterable
from itertools import islice

import pytest
from django.db import transaction

from ledger import guards, keys, rules, spans
from ledger.rules import Chain, Leaves
from ledger.verification import Verification
from proofs.ledger.tamperings import tamperings
from proofs.ledger.world import Tampering, World, look, make_world, tampered

BATCH = 200  # tamperings of one transaction; none is ever committed
ENOUGH = 60  # tamperings that a blind verifier is asked about

BLIND = {
    "to roots": (spans, "_is_whole", lambda *_: True, "edited event"),
    "to fields": (Leaves, "_content", lambda *_: None, "edited event"),
    "to what is gone": (Leaves, "close", lambda *_: None, "emptied"),
    "to missing seals": (Chain, "_number", lambda *_: None, "deleted seals"),
    "to digests of seals": (Chain, "_statement", lambda *_: None, "edited seal"),
    "to signatures": (rules, "verifies", lambda *_: True, "replaced key"),
    "to the end": (Verification, "_head", lambda *_: None, "end cut off"),
    "to what waits": (
        Verification,
        "_unsealed",
        lambda *_: None,
        "edited while it waits for its seal",
    ),
    "to altered triggers": (
        guards,
        "GUARDS",
        "SELECT unnest('{ledger_event,ledger_seal}'::text[])",
        "guard weakened",
    ),
    "to rules and more": (guards, "_strange", lambda _: "", "guard weakened"),
}


@pytest.fixture
def world(ledger_db) -> World:
    return make_world()


def not_found(world: World, tampered_with: Iterable[Tampering]) -> list[tuple[Tampering, str]]:
    """What is not found where it is, with what was found instead."""
    wrong, trusted, rest = [], keys.trusted(), iter(tampered_with)
    while batch := list(islice(rest, BATCH)):
        with transaction.atomic():
            for one in batch:
                with tampered(one.statements):
                    finding = look(trusted)
                if not one.is_found_by(finding):
                    wrong.append((one, str(finding)))
            transaction.set_rollback(True)
    return wrong


def test_there_are_10000_of_which_most_are_distinct(world):
    everything = list(tamperings(world))
    assert len(everything) == 10_000
    assert len({one.statements for one in everything}) > 7_000


def test_each_is_found_where_it_is(world):
    assert look(keys.trusted()) is None
    wrong = not_found(world, tamperings(world))
    assert not wrong, (Counter(one.family for one, _ in wrong), wrong[:5])


@pytest.mark.parametrize("blind", BLIND)
def test_a_verifier_that_is_blind_is_noticed(world, monkeypatch, blind):
    owner, name, instead, family = BLIND[blind]
    asked = list(tamperings(world, families=[family], most=ENOUGH))
    monkeypatch.setattr(owner, name, instead)
    assert not_found(world, asked)
