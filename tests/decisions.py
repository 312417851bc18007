"""What a rule decided, in one word."""

from contextlib import contextmanager

import pytest

from core.decision import Denied, Deny


def code_of(decision) -> str:
    """The code of a refusal, or `OK`."""
    return decision.code.value if isinstance(decision, Deny) else "OK"


@contextmanager
def denied(code):
    """What is inside is refused, with this code."""
    with pytest.raises(Denied) as refusal:
        yield
    assert code_of(refusal.value.deny) == code, refusal.value.deny.message
