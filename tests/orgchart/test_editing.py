"""Editing single rows: one change of policy each, or none at all."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from django.db import connection, connections, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.decision import Code, Denied
from documents.models import Memory
from orgchart.editing import TABLES, changed_values, delete_row, save_row, subject_of
from orgchart.models import Alias, ContactRule, Group, MailTypeRule, Organisation, Role
from orgchart.needed import rows_that_need
from orgchart.second_person.edits import apply_edit, saving
from orgchart.services import set_settings
from tests.company import load_company
from tests.concurrency import is_waiting_for_a_lock
from tests.decisions import denied
from tests.patience import wait_until
from tests.plans import most_of, renew_statistics
from tests.rows import newest_event


@pytest.fixture
def company(db):
    return load_company("nexus")


@pytest.fixture
def edit(company):
    """Save or delete a row as a person of HR, at the current version."""

    def edited(verb, row, **changes):
        facts = {
            "row": row,
            "organisation_id": company.organisation.id,
            "caller": company.person("HR"),
            "now": timezone.now(),
            "reason": "because",
            "expected_version": company.policy_version,
        }
        return verb(**(facts | changes))

    return edited


class TestSaveRow:
    def test_writes_the_row_the_version_and_the_event_together(self, company, edit):
        before = company.policy_version
        row = MailTypeRule.objects.get(name="info")
        row.senders = ["ceo"]
        change = edit(save_row, row)
        assert change.after.version == company.policy_version == before + 1
        assert newest_event().action == "mail_type.changed"
        assert newest_event().subject == "mail_type:info"
        assert newest_event().details["forbidden"] == list(change.difference.forbidden)

    def test_previews_without_a_trace(self, company, edit):
        seen = (company.policy_version, newest_event().seq)
        row = MailTypeRule.objects.get(name="info")
        row.senders = ["ceo"]
        change = edit(save_row, row, preview=True)
        assert change.difference.forbidden
        assert MailTypeRule.objects.get(name="info").senders != ["ceo"]
        assert (company.policy_version, newest_event().seq) == seen

    def test_records_what_was_replaced(self, company, edit):
        row = company.agent("backend_worker")
        row.system_prompt = "Now."
        edit(save_row, row)
        assert newest_event().details["changed"] == {
            "system_prompt": {"before": "", "after": "Now."}
        }
        row.refresh_from_db()
        row.system_prompt, row.title = "x" * 9000, "Head"
        edit(save_row, row)
        changed = newest_event().details["changed"]
        assert changed["title"]["after"] == "Head"
        assert changed["system_prompt"]["before"] == "Now."
        assert changed["system_prompt"]["after"] == "x" * 8000 + "… and 1000 more characters"

    def test_adds_what_is_new(self, company, edit):
        alias = Alias(organisation=company.organisation, alias="boss", agent=company.agent("ceo"))
        edit(save_row, alias, caller=company.person("Board"))
        assert newest_event().action == "alias.added"
        assert company.policy.resolve("boss").handle == "ceo"

    @pytest.mark.parametrize("reason", ["", "  ", "\n"])
    def test_asks_for_a_reason(self, company, edit, reason):
        row = Role.objects.get(name="ceo")
        for verb in (save_row, delete_row):
            with pytest.raises(Denied) as refusal:
                edit(verb, row, reason=reason)
            assert refusal.value.deny.code is Code.INVALID_PARAMS

    def test_refuses_a_stale_version(self, company, edit):
        row = Role.objects.get(name="ceo")
        row.title = "Chief"
        with pytest.raises(Denied) as refusal:
            edit(save_row, row, expected_version=company.policy_version + 1)
        assert refusal.value.deny.code is Code.VERSION_MISMATCH
        assert Role.objects.get(name="ceo").title != "Chief"

    def test_refuses_what_breaks_an_invariant_with_all_of_them(self, company, edit):
        row = Role.objects.get(name="qa_worker")
        row.files_write, row.tools = ["src/"], [*row.tools, "create_contract"]
        with pytest.raises(Denied) as refusal:
            edit(save_row, row)
        broken = {v["invariant"] for v in refusal.value.deny.details["violations"]}
        assert {"QA cannot write source", "C-07"} <= broken

    def test_explains_what_only_the_database_knows(self, company, edit):
        twin = Role(
            organisation=company.organisation, name="ceo", title="T", level=1, kind="executive"
        )
        with pytest.raises(Denied) as refusal:
            edit(save_row, twin)
        assert "role_name_once" in refusal.value.deny.message
        assert refusal.value.deny.code is Code.INVALID_PARAMS

    def test_never_turns_the_policy_version_back(self, company, edit):
        held = Organisation.objects.get(id=company.organisation.id)
        row = Role.objects.get(name="ceo")
        row.title = "Chief"
        edit(save_row, row)
        held.name = "Renamed"
        edit(save_row, held)
        assert company.policy_version == held.policy_version + 2


class TestDeleteRow:
    def test_takes_the_row_away_with_its_event(self, company, edit):
        rule = ContactRule.objects.get(sender__name="it_manager", recipient__name="hr_manager")
        edit(delete_row, rule)
        assert not ContactRule.objects.filter(id=rule.id).exists()
        assert newest_event().action == "contact.removed"
        assert newest_event().subject == "contact:it_manager -> hr_manager"

    def test_previews_without_taking_it(self, company, edit):
        rule = ContactRule.objects.get(sender__name="it_manager", recipient__name="hr_manager")
        assert edit(delete_row, rule, preview=True).difference.forbidden
        assert ContactRule.objects.filter(id=rule.id).exists()
        assert rule.pk is not None

    def test_names_what_still_stands_on_it(self, company, edit):
        with pytest.raises(Denied) as refusal:
            edit(delete_row, Role.objects.get(name="qa_worker"))
        assert "qa_worker" in refusal.value.deny.message

    def test_never_deletes_agents_or_organisations(self, company, edit):
        for row in (company.agent("qa_worker"), company.organisation):
            with denied("INVALID_PARAMS"):
                edit(delete_row, row)


class TestDeletingAGroup:
    @pytest.fixture
    def group(self, company):
        return Group.objects.create(organisation=company.organisation, slug="team", name="Team")

    def remember(self, group, entries):
        Memory.objects.bulk_create(
            Memory(
                organisation=group.organisation,
                scope="group",
                group=group,
                person="human:hanna",
                text="Ask first.",
                words="'ask'",
                created_at=timezone.now(),
            )
            for _ in range(entries)
        )

    def test_with_a_memory_is_refused_and_says_what_can_be_done(self, edit, group):
        self.remember(group, 1)
        with pytest.raises(Denied) as refusal:
            edit(delete_row, group)
        assert refusal.value.deny.code == Code.INVALID_PARAMS
        assert "what was written in it is kept" in refusal.value.deny.message
        assert "let its agents leave it" in refusal.value.deny.next_action

    @pytest.mark.parametrize("entries", [0, 50])
    def test_reads_no_more_however_much_was_written_in_it(self, edit, group, entries):
        """All of it waits for the end of this: changes of the organisation, and every seal."""
        self.remember(group, entries)
        with CaptureQueriesContext(connection) as asked, suppress(Denied):
            edit(delete_row, group, preview=True)
        of_memory = [one["sql"] for one in asked if "documents_memory" in one["sql"]]
        assert 0 < len(of_memory) <= 3
        assert "LIMIT" in of_memory[0]
        assert len(of_memory) == 1 or entries == 0

    def test_reads_nothing_of_other_groups(self, company, edit, group):
        other = Group.objects.create(organisation=company.organisation, slug="other", name="Other")
        self.remember(other, 3000)
        renew_statistics("documents_memory")
        most, found = most_of(lambda: rows_that_need(group, 20))
        assert not found
        assert most < 100

    def test_names_some_of_its_members(self, company, edit, group):
        company.organisation.agents.update(group=group, name=F("handle"))
        with pytest.raises(Denied) as refusal:
            edit(delete_row, group)
        assert refusal.value.deny.code == Code.INVALID_PARAMS
        assert "team is still needed by backend_worker, ceo, " in refusal.value.deny.message


class TestAnEditWhileAnotherIsSaved:
    """A form that names the version to come waits for the other change, and overwrites nothing."""

    HOOK = {"board_webhook": "https://board.example/hook"}

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize(
        ("columns", "kept"),
        [({"description": "by HR"}, True), ({"settings": {"task_lease": 60}}, False)],
    )
    def test_keeps_what_the_board_has_just_set(self, transactional_db, columns, kept):
        """Spec: people 13."""
        company = load_company("nexus")
        row = Organisation.objects.get(id=company.organisation.id)
        for name, value in columns.items():
            setattr(row, name, {**row.settings, **value} if name == "settings" else value)
        edit = saving(row)

        def apply():
            try:
                apply_edit(
                    edit,
                    organisation_id=row.id,
                    caller=company.person("Board" if "settings" in columns else "HR"),
                    now=timezone.now(),
                    reason="because",
                    expected_version=row.policy_version + 1,
                )
            except Denied as refusal:
                return refusal.deny.code
            finally:
                connections.close_all()
            return "OK"

        with ThreadPoolExecutor(1) as other:
            with transaction.atomic():
                Organisation.objects.select_for_update(no_key=True).get(id=row.id)
                answer = other.submit(apply)
                wait_until(is_waiting_for_a_lock)
                set_settings(
                    organisation=row,
                    values=self.HOOK,
                    caller=company.person("Board"),
                    now=timezone.now(),
                )
            assert answer.result() == ("OK" if kept else Code.VERSION_MISMATCH)
        row.refresh_from_db()
        assert row.settings["board_webhook"] == self.HOOK["board_webhook"]
        assert (row.description == "by HR") is kept


class TestNames:
    def test_every_table_of_the_policy_has_one(self, company):
        for model in TABLES:
            row = model._default_manager.first()
            if row is not None:
                assert subject_of(row).startswith(f"{TABLES[model].noun}:")

    def test_changed_values_are_those_that_differ_from_the_table(self, company):
        row = Role.objects.get(name="ceo")
        row.title = "Chief"
        assert changed_values(row, ["title", "level"]) == [("title", "CEO", "Chief")]
        assert changed_values(Role(title="X"), ["title"]) == [("title", None, "X")]
