"""HR changes the organisation while a person takes HR out of service: one after the other."""

import threading

import pytest
from django.utils import timezone

from core.decision import Code
from governance.staff import hiring
from governance.staff.deactivation import deactivate_by_person
from tests.company import load_company
from tests.concurrency import at_once, is_waiting_for_a_lock
from tests.patience import PATIENCE
from toolbox import door

HIRED = {"handle": "bob", "role": "backend_worker", "title": "B", "job_description": "x"}


@pytest.mark.django_db(transaction=True)
def test_hr_that_is_deactivated_while_it_hires(db, monkeypatch):
    """The person waits for the hire and is told of it; neither waits for the other."""
    company = load_company("nexus")
    changes = [{"act": "hire", "subject": "bob"}]
    order = {"to": "hr_manager", "title": "T", "body": "B", "kind": "org_change"}
    made = company.call("ceo", "generate_contract", changes=changes, **order).result
    company.call("hr_manager", "accept_contract", contract_id=made["contract_id"])
    caller, version, use = company.caller("hr_manager"), company.policy.version, hiring.use_change
    begun, ended = threading.Event(), threading.Event()

    def use_and_wait(**fields):
        found = use(**fields)
        begun.set()
        while not ended.is_set() and not is_waiting_for_a_lock():
            ended.wait(0.01)
        return found

    def deactivate():
        begun.wait(PATIENCE)
        try:
            return deactivate_by_person(
                person=company.person("Board"), agent="hr_manager", reason="r", now=timezone.now(),
                expected_version=version,
            )  # fmt: skip
        finally:
            ended.set()

    monkeypatch.setattr(hiring, "use_change", use_and_wait)
    hire = {**HIRED, "reports_to": "it_manager"}
    hired, left = at_once(
        [lambda: door.call(caller, "create_agent_jd", hire, now=timezone.now()), deactivate]
    )
    assert (hired.status, left) == (200, Code.VERSION_MISMATCH)
