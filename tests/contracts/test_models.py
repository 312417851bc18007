"""What the database itself refuses, whoever writes."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django_fsm import TransitionNotAllowed

from contracts.models import Contract, OrgChangeLine, Report, Verdict
from contracts.vocabulary import FINAL_STATES, MACHINE, ContractState
from mailroom.delivery import send_system_mail
from tests.contracts.world import (
    accept,
    approve,
    at_state,
    issue,
    judge,
    now,
    org_change,
    row,
)

pytestmark = pytest.mark.django_db
TABLE = [(step.sources, step.target) for step in MACHINE.steps.values()]


def refused(act):
    """What the database says against an action, or ''; nothing of it stays either way."""
    try:
        with transaction.atomic():
            act()
            connection.check_constraints()
            transaction.set_rollback(True)
    except IntegrityError as error:
        return str(error)
    return ""


def update(contract_id, **fields):
    return refused(lambda: Contract.objects.filter(id=contract_id).update(**fields))


class TestWhatWasAgreed:
    @pytest.mark.parametrize("state", [ContractState.PENDING, ContractState.IN_PROGRESS])
    def test_never_changes(self, nexus, state):
        contract_id = at_state(nexus, state, workspace_scope=["src/"], assigned_branch="feature/a")
        version = row(contract_id).version + 1
        for fields in (
            {"title": "x"},
            {"body": "x"},
            {"priority": "low"},
            {"deadline": now()},
            {"kind": "budget"},
            {"mode": "coding"},
            {"workspace_scope": ["src/", "company/"]},
            {"assigned_branch": "feature/other"},
            {"grants": [{"from": "a", "to": "b"}]},
            {"created_at": now()},
            {"supersedes_id": "CON-x"},
        ):
            problem = update(contract_id, version=version, **fields)
            assert "does not change" in problem, fields

    def test_never_gets_another_assignee(self, nexus):
        contract_id = issue(nexus)
        other = nexus.agent("devops_worker")
        assert "does not change" in update(contract_id, version=2, assignee=other)

    def test_nor_another_environment_artefact_or_time(self, nexus):
        contract_id = approve(nexus)
        for fields in (
            {"environment": "staging"},
            {"artifact": "sha256:bb"},
            {"expires_at": now() + timedelta(days=9)},
        ):
            assert "does not change" in update(contract_id, version=2, **fields)

    def test_is_never_deleted(self, nexus):
        contract_id = issue(nexus)
        assert "never deleted" in refused(
            lambda: Contract.objects.filter(id=contract_id)._raw_delete("default")
        )

    def test_every_change_is_the_next_version(self, nexus):
        contract_id = issue(nexus)
        for version in (1, 3):
            fields = {"state": "in_progress", "accepted_at": now(), "version": version}
            assert "next version" in update(contract_id, **fields)

    def test_an_empty_change_is_none(self, nexus):
        assert update(issue(nexus), title="Login") == ""


class TestStates:
    @pytest.mark.parametrize("state", ContractState)
    def test_go_only_as_the_table_says(self, nexus, state):
        contract_id = at_state(nexus, state)
        version = row(contract_id).version + 1
        for target in ContractState:
            final = target in FINAL_STATES
            problem = update(
                contract_id,
                state=target,
                version=version,
                accepted_at=now(),
                submitted_at=now(),
                closed_at=now() if final else None,
                closed_by="x" if final else "",
                closed_reason="x" if final else "",
            )
            allowed = any(state in sources and target == end for sources, end in TABLE)
            if state in FINAL_STATES:
                assert "final" in problem
            else:
                assert bool(problem) == (not allowed and state is not target), target

    def test_of_a_row_are_moved_by_its_methods_only(self, nexus):
        contract = row(issue(nexus))
        for state in ContractState:
            with pytest.raises(AttributeError):
                contract.state = state

    def test_refuse_a_move_that_they_do_not_have(self, nexus):
        contract = row(issue(nexus))
        with pytest.raises(TransitionNotAllowed):
            contract.submit(at=now())

    def test_never_contradict_themselves(self, nexus):
        contract_id = issue(nexus)
        for fields in (
            {"state": "in_progress"},  # accepted by nobody
            {"state": "cancelled"},  # closed by nobody
            {"state": "cancelled", "closed_at": now(), "closed_by": "x"},  # no reason
            {"state": "done", "accepted_at": now()},
            {"closed_at": now(), "closed_by": "x", "closed_reason": "x"},  # closed and open
            {"used_at": now()},  # no approval
            {"issuer_id": None, "issuer_name": "ceo"},
        ):
            assert update(contract_id, version=2, **fields), fields

    def test_work_is_never_in_review_that_nobody_handed_in(self, nexus):
        contract_id = at_state(nexus, ContractState.IN_PROGRESS)
        assert "contract_submitted_first" in update(contract_id, state="review", version=3)

    @pytest.mark.parametrize(
        ("fields", "check"),
        [
            ({"state": "done", "accepted_at": now()}, "contract_state_known"),
            ({"version": 0}, "contract_version_from_1"),
            ({"issuer_id": None, "issuer_name": "ceo"}, "contract_has_an_issuer"),
        ],
    )
    def test_are_checked_even_where_a_trigger_is_off(self, nexus, fields, check):
        contract_id = issue(nexus)
        connection.check_constraints()
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE contracts_contract DISABLE TRIGGER USER")
        assert check in update(contract_id, **fields)

    def test_the_assignee_never_becomes_the_issuer(self, nexus):
        contract_id = issue(nexus)
        fields = {"issuer_id": row(contract_id).assignee_id, "issuer_name": "backend_worker"}
        assert "contract_not_to_oneself" in update(contract_id, version=2, **fields)


class TestABirth:
    def birth(self, nexus):
        """How another contract like a sound one would be taken, with fields of one's own."""
        contract = row(issue(nexus))
        like = {f.attname: getattr(contract, f.attname) for f in Contract._meta.concrete_fields}
        notice = send_system_mail(
            organisation_id=nexus.organisation.id,
            recipient=nexus.policy.agents["backend_worker"],
            subject="x",
            body="",
            quotes=[],
            now=now(),
        )

        def born(**fields):
            made = {**like, "id": "CON-made", "notice_id": notice, **fields}
            return refused(lambda: Contract(**made).save(force_insert=True))

        return born

    def test_is_refused_where_it_makes_no_sense(self, nexus):
        born = self.birth(nexus)
        for fields in (
            {"state": "in_progress", "accepted_at": now()},
            {"version": 2},
            {"version": 0},
            {"kind": "favour"},
            {"mode": "root"},
            {"priority": "asap"},
            {"issuer_id": None},
            {"kind": "deployment_approval"},
            {"kind": "deployment_approval", "environment": "production", "artifact": "sha256:aa"},
            {"environment": "production"},
            {"artifact": "sha256:aa"},
            {"expires_at": now()},
            {"used_at": now()},
            {"amount": 5, "currency": "USD"},
            {"kind": "budget", "amount": 0, "currency": "USD"},
            {"kind": "budget", "amount": -1, "currency": "USD"},
            {"kind": "budget", "amount": 5},
            {"kind": "budget", "currency": "USD"},
            {"kind": "budget", "amount": 5, "currency": "USD", "used_at": now()},
            {"kind": "budget", "request_id": "MAIL-none"},
            {"assigned_branch": "main"},
            {"assigned_branch": "MASTER"},
            {"assigned_branch": "Production"},
            {"assigned_branch": "HEAD"},
            {"assigned_branch": "--force"},
            {"assigned_branch": "a b"},
            {"notice_id": "MAIL-none"},
        ):
            assert born(**fields), fields

    def test_is_taken_otherwise(self, nexus):
        assert self.birth(nexus)() == ""

    def test_an_approval_is_never_of_the_board_or_past(self, nexus):
        whole = {
            "kind": "deployment_approval",
            "environment": "production",
            "artifact": "sha256:aa",
            "expires_at": now() + timedelta(hours=1),
        }
        born = self.birth(nexus)
        assert born(**whole) == ""
        assert born(**whole, issuer_id=None, issuer_name="board")
        assert born(**{**whole, "expires_at": now() - timedelta(days=1)})


class TestALineOfAnOrgChange:
    def test_is_used_once_and_nothing_else_of_it_changes(self, nexus):
        contract_id = org_change(nexus, "deactivate devops_worker")
        lines = OrgChangeLine.objects.filter(contract_id=contract_id)
        assert "used once" in refused(lambda: lines.update(subject="it_manager"))
        assert "used once" in refused(lambda: lines._raw_delete("default"))
        lines.update(used_at=now())
        assert "used once" in refused(lambda: lines.update(used_at=None))
        late = OrgChangeLine(contract_id=contract_id, act="hire", subject="recruiter")
        assert "when it is issued" in refused(late.save)

    def test_gives_for_ever_what_it_named(self, nexus):
        """Whatever columns a line has: the guard knows each, also one that is added later."""
        contract_id = org_change(nexus, "move devops_worker")
        lines = OrgChangeLine.objects.filter(contract_id=contract_id)
        named = [f for f in OrgChangeLine._meta.concrete_fields if f.default in ("", list)]
        assert len(named) == 6
        for field in named:
            other = ["qa_worker"] if field.default is list else "qa_worker"
            change = {field.attname: other}
            assert "used once" in refused(lambda change=change: lines.update(**change))
            assert "used once" in refused(
                lambda change=change: lines.update(used_at=now(), **change)
            )

    def test_names_a_known_act_and_a_subject(self, nexus):
        contract_id = org_change(nexus, "deactivate devops_worker", accepted=False)
        odd = OrgChangeLine(contract_id=contract_id, act="promote", subject="x")
        assert "org_change_act_known" in refused(odd.save)
        blank = OrgChangeLine(contract_id=contract_id, act="hire", subject="")
        assert "org_change_has_a_subject" in refused(blank.save)


class TestAnApproval:
    def test_is_used_once_and_in_time(self, nexus):
        contract_id = approve(nexus)
        late = now() + timedelta(days=2)
        assert "used_in_time" in update(contract_id, used_at=late, version=2)
        Contract.objects.filter(id=contract_id).update(used_at=now(), version=2)
        assert "used once" in update(contract_id, used_at=now(), version=3)
        assert "used once" in update(contract_id, used_at=None, version=3)


class TestWhatWasSaid:
    def test_stays(self, nexus):
        contract_id = at_state(nexus, ContractState.REVIEW, workspace_scope=["src/"])
        judge(nexus, contract_id, "FAIL")
        for rows in (Report.objects.all(), Verdict.objects.all()):
            assert "insert-only" in refused(lambda rows=rows: rows.update(body="x"))
            assert "insert-only" in refused(lambda rows=rows: rows._raw_delete("default"))

    def test_a_submission_has_a_number_of_its_own(self, nexus):
        contract_id = at_state(nexus, ContractState.REVIEW)
        report = Report.objects.get()
        other = issue(nexus)
        accept(nexus, other)
        twin = Report(
            organisation=nexus.organisation, contract_id=contract_id, kind="completion",
            report_type="status", title="x", body="x", author_id=report.author_id,
            mail_id=row(other).notice_id, created_at=now(),
        )  # fmt: skip
        assert "report_completion_is_numbered" in refused(twin.save)
        twin.submission = 1
        assert "report_submission_once" in refused(twin.save)
        twin.submission = 40_000  # an issuer may send work back as often as it can call
        twin.save()

    def test_a_verdict_stands_on_something(self, nexus):
        contract_id = at_state(nexus, ContractState.REVIEW, workspace_scope=["src/"])
        judge(nexus, contract_id)
        given = Verdict.objects.get()
        blank = Verdict(
            organisation=nexus.organisation, contract_id=contract_id, report_id=given.report_id,
            finding="PASS", evidence="", judge_id=row(contract_id).assignee_id,
            mail_id=row(contract_id).notice_id, created_at=now(),
        )  # fmt: skip
        assert "verdict_has_evidence" in refused(blank.save)
        blank.evidence, blank.judge_id = "all green", given.judge_id
        assert "one verdict on a submission" in refused(blank.save)

    @pytest.mark.parametrize(
        ("rows", "fields", "check"),
        [
            (Report, {"kind": "rumour", "submission": None}, "report_kind_known"),
            (Report, {"report_type": "poem"}, "report_type_known"),
            (Verdict, {"finding": "HMM", "judge_id": 1}, "verdict_finding_known"),
        ],
    )
    def test_is_of_a_known_kind(self, nexus, rows, fields, check):
        judge(nexus, at_state(nexus, ContractState.REVIEW, workspace_scope=["src/"]))
        said = rows.objects.get()
        like = {f.attname: getattr(said, f.attname) for f in rows._meta.concrete_fields}
        twin = rows(**{**like, "id": None, "mail_id": row(issue(nexus)).notice_id, **fields})
        assert check in refused(twin.save)


@pytest.mark.parametrize(
    "table",
    [
        "contracts_contract",
        "contracts_report",
        "contracts_verdict",
        "contracts_orgchangeline",
        "governance_case",
    ],
)
@pytest.mark.django_db
def test_no_table_of_agreements_is_emptied(table):
    with (
        pytest.raises(IntegrityError, match="never emptied"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(f"TRUNCATE {table} CASCADE")
