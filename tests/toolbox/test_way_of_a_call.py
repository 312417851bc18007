"""How many functions of ours a call passes between its view and its commit."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orgchart.policy_cache import POLICIES
from tests.company import Company, load_company

ROOT = Path(__file__).parents[2]
PURE = ("core/", "orgchart/policy/", "toolbox/registry.py", "ledger/canonical.py")
DECISIONS = ("/rules.py", "/rules/", "/terms.py")
"""A call asks pure decisions and values; it does not pass through them."""
EFFECTS = ("core/database.py", "core/machines.py")
"""In `core`, but not pure: a call passes through them."""
INNER = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>")
"""Parts of the function that they are written in."""
MAIL = {"to": "it_manager", "type": "info", "subject": "Hello", "body": "A word."}


@pytest.fixture
def company(transactional_db: None) -> Company:
    POLICIES.clear()
    return load_company("nexus")


def is_ours(file: str) -> bool:
    """Whether a file belongs to the product; the environment may lie inside the checkout."""
    return file.startswith(f"{ROOT}/") and not file.startswith(
        (f"{ROOT}/.venv/", f"{ROOT}/var/", f"{ROOT}/tests/", f"{ROOT}/nexus_site/run/database/")
    )


def is_passed(place: str, name: str, owner: object) -> bool:
    """Whether a function is a step: no decision, no method of a value, no part of another."""
    pure = place.startswith(PURE) and not place.startswith(EFFECTS)
    decides = any(part in place for part in DECISIONS)
    value = getattr(owner, "__dataclass_params__", None)
    return not (pure or decides or (value and value.frozen) or name in INNER)


def functions_of(call: Callable[[], Any]) -> list[str]:
    """The functions of ours that a call passes between the view and its commit, each once."""
    found: dict[str, None] = {}
    inside = False

    def watch(frame: Any, event: str, _: Any) -> None:
        nonlocal inside
        code = frame.f_code
        if event != "call" or not is_ours(code.co_filename):
            return
        place = code.co_filename.removeprefix(f"{ROOT}/")
        if code.co_qualname == "ToolCallView.post":
            inside = True
        elif place == "toolbox/wake.py":  # the change is committed
            inside = False
        if inside and is_passed(place, code.co_name, frame.f_locals.get("self")):
            found[f"{place}:{code.co_qualname}"] = None

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(found)


def test_of_a_mail_passes_twenty_at_most(company):
    company.call("backend_worker", "send_mail", **MAIL)
    found = functions_of(lambda: company.call("backend_worker", "send_mail", **MAIL))
    assert len(found) <= 20, "\n".join(found)


def test_of_a_claim_passes_twenty_five_at_most(company):
    def claim() -> None:
        task = company.call("it_manager", "task_create", subject="Build", description="It.").result
        found.append(
            functions_of(
                lambda: company.call(
                    "backend_worker", "task_update", taskId=task["id"], status="in_progress"
                )
            )
        )

    found: list[list[str]] = []
    claim()
    claim()
    assert len(found[-1]) <= 25, "\n".join(found[-1])
