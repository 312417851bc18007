"""Changes of the organisation at the same moment as calls of its agents: one after the other."""

import shutil
import threading
from functools import partial

import pytest
from django.db import transaction
from django.utils import timezone

from contracts.closing import close_contract
from contracts.models import Contract
from contracts.vocabulary import ContractOutcome
from core.decision import Code
from governance.staff import hiring
from governance.staff.deactivation import deactivate_by_person
from orgchart.packs import load_pack, loading
from orgchart.policy.vocabulary import ToolMode
from tests.company import PACKS, load_company
from tests.concurrency import at_once, is_waiting_for_a_lock, outlast_the_look_for_a_deadlock
from tests.patience import PATIENCE, wait_until
from toolbox import door
from toolbox.models import ModeGrant
from toolbox.modes import open_mode

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


@pytest.mark.django_db(transaction=True)
def test_a_pack_that_changes_an_issuer_while_it_closes_what_a_leaver_works_on(
    db, monkeypatch, tmp_path
):
    """The pack is written for longer than PostgreSQL waits before it looks for a deadlock."""
    company = load_company("nexus")
    order = {"to": "backend_worker", "title": "T", "body": "B"}
    made = company.call("it_manager", "create_contract", **order).result
    caller, begun = company.caller("it_manager"), threading.Event()
    shutil.copytree(PACKS / "nexus", tmp_path / "nexus")
    for agent, line in {"backend_worker": "active: false", "it_manager": "title: Head"}.items():
        file = tmp_path / "nexus" / "agents" / f"{agent}.yaml"
        kept = [each for each in file.read_text().splitlines() if not each.startswith("title:")]
        file.write_text("\n".join([*kept, line, ""]))
    write = loading.write_pack

    def write_late(*args, **fields):
        begun.set()
        outlast_the_look_for_a_deadlock()
        return write(*args, **fields)

    def cancel():
        begun.wait(PATIENCE)
        wanted = {"contract_id": made["contract_id"], "outcome": "cancelled", "reason": "r"}
        return door.call(caller, "close_contract", wanted, now=timezone.now())

    monkeypatch.setattr(loading, "write_pack", write_late)
    load = partial(load_pack, tmp_path / "nexus", caller=company.system, now=timezone.now())
    loaded, refused = at_once([load, cancel])
    assert getattr(loaded, "changed", loaded) is True
    assert refused.body["error_code"] == Code.RECIPIENT_INACTIVE, "it decided before"


@pytest.mark.django_db(transaction=True)
def test_a_contract_that_is_closed_while_its_assignee_is_deactivated(db):
    """A person has opened coding in the session that works under the contract (Spec: modes 13)."""
    company = load_company("nexus")
    order = {"to": "backend_worker", "title": "T", "body": "B", "mode": "coding"}
    number = company.call("it_manager", "create_contract", **order).result["contract_id"]
    company.call("backend_worker", "accept_contract", contract_id=number)
    board, caller = company.person("Board"), company.caller("it_manager")
    open_mode(
        session_id=company.caller("backend_worker").session.id, mode=ToolMode.CODING,
        caller=board, now=timezone.now(), reason="To repair it.",
    )  # fmt: skip
    version, begun = company.policy.version, threading.Event()

    def close():
        with transaction.atomic():
            Contract.objects.select_for_update(no_key=True).get(id=number)
            begun.set()
            wait_until(is_waiting_for_a_lock)
            return close_contract(
                contract_id=number, outcome=ContractOutcome.CANCELLED, reason="r",
                expected_version=None, caller=caller, now=timezone.now(),
            )["state"]  # fmt: skip

    def deactivate():
        begun.wait(PATIENCE)
        return deactivate_by_person(
            person=board, agent="backend_worker", reason="r", now=timezone.now(),
            expected_version=version,
        )["agent"]  # fmt: skip

    assert at_once([close, deactivate]) == ["cancelled", "backend_worker"]
    assert not ModeGrant.objects.filter(closed_at=None).exists()
