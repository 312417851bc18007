"""What a rule decided, in one word."""

from core.decision import Deny


def code_of(decision) -> str:
    """The code of a refusal, or `OK`."""
    return decision.code.value if isinstance(decision, Deny) else "OK"
