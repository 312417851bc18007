"""HR changes who may what: form, preview, confirmation; nothing happens in between or beside it."""

import pytest

from core.limits import MAX_SENTENCE, MAX_SUBJECT, MAX_TEXT
from core.permissions import PeopleGroup
from orgchart.models import (
    Agent,
    Alias,
    ContactRule,
    Group,
    MailTypeRule,
    Organisation,
    Role,
    ToolOverride,
)
from orgchart.packs import export_pack, review_pack
from orgchart.policy_cache import current_policy
from tests.admin.forms import confirm, filled, preview
from tests.admin.places import change_page, edit_page, list_page, page_of
from tests.browser.day import HOSTILE
from tests.company import load_company
from tests.rows import newest_event

REASON = "The new team needs it."


def add_page(model, company):
    return f"{list_page(model)}add/?organisation={company.organisation.id}"


class TestPreview:
    def test_says_what_becomes_allowed_and_forbidden(self, board, company, rule):
        answer = preview(
            board,
            change_page(rule),
            "contactrule_form",
            types=["info", "staffing_request"],
            reason=REASON,
        )
        html = answer.content.decode()
        allowed, _, forbidden = html.partition('id="forbidden"')
        assert "it_manager may send info to any hr_manager" in allowed
        assert "it_manager may send tool_request to any hr_manager" in forbidden

    def test_leaves_nothing(self, board, company, rule):
        before = (company.policy_version, newest_event().seq, list(rule.types))
        preview(board, change_page(rule), "contactrule_form", types=["info"], reason=REASON)
        rule.refresh_from_db()
        assert (company.policy_version, newest_event().seq, list(rule.types)) == before
        assert current_policy(company.organisation.id).version == before[0]

    def test_of_a_new_row_leaves_nothing(self, board, company):
        before = (company.policy_version, newest_event().seq, Role.objects.count())
        answer = preview(
            board,
            add_page(Role, company),
            "role_form",
            name="archivist",
            title="Archivist",
            level="3",
            kind="worker",
            reason=REASON,
        )
        assert answer.status_code == 200
        assert 'id="confirm-form"' in answer.content.decode()
        assert (company.policy_version, newest_event().seq, Role.objects.count()) == before

    def test_names_every_invariant_that_would_break_and_offers_no_confirmation(
        self, board, company, role
    ):
        answer = preview(
            board,
            change_page(role),
            "role_form",
            files_write="tests/\nreports/qa/\nsrc/",
            tools=[*role.tools, "create_contract"],
            reason=REASON,
        )
        html = answer.content.decode()
        assert answer.status_code == 422
        assert "QA cannot write source" in html
        assert "C-07" in html
        assert 'name="_confirm"' not in html

    def test_can_be_gone_back_from_with_everything_typed(self, board, company, role):
        page = change_page(role)
        data = filled(board, page, "role_form", title="Quality", reason=REASON)
        html = board.post(page, {**data, "_edit": "1"}).content.decode()
        assert 'value="Quality"' in html
        assert REASON in html

    def test_escapes_what_was_typed(self, board, company, role):
        answer = preview(
            board,
            change_page(role),
            "role_form",
            prohibitions=HOSTILE,
            title=HOSTILE,
            reason=HOSTILE,
        )
        html = answer.content.decode()
        assert "<script>document.title" not in html
        assert "&lt;script&gt;document.title" in html

    def test_asks_for_a_reason(self, board, company, role):
        answer = preview(board, change_page(role), "role_form", title="Quality", reason="  ")
        html = answer.content.decode()
        assert 'id="confirm-form"' not in html
        assert "This field is required" in html


LONGEST = (
    ((Role, "summary"), MAX_TEXT),
    ((Role, "prohibitions"), MAX_SENTENCE),
    ((Role, "title"), MAX_SUBJECT),
    ((Group, "name"), MAX_SUBJECT),
    ((Group, "context"), MAX_TEXT),
    ((Agent, "title"), MAX_SUBJECT),
    ((Agent, "system_prompt"), MAX_TEXT),
    ((Agent, "job_description"), MAX_TEXT),
    ((MailTypeRule, "description"), MAX_SENTENCE),
    ((Organisation, "description"), MAX_TEXT),
    ((Organisation, "name"), MAX_SUBJECT),
)


class TestATextOfThePolicy:
    """Its longest value can be exported and loaded again (Spec: packs 6); no longer is taken."""

    def seen(self, board, company, field, text):
        """The page of a form, and what it shows of this text in the field."""
        model, column = field
        row = company.organisation
        if model is not Organisation:
            row = model.objects.filter(organisation=row).order_by("-pk").first()
        page = edit_page(row) if model is Agent else change_page(row)
        form = f"{model._meta.model_name}_form"
        return page, preview(board, page, form, **{column: text}, reason=REASON)

    @pytest.fixture
    def company(self):
        return load_company("soloqueue")

    @pytest.mark.parametrize(("field", "longest"), LONGEST)
    def test_fits_into_a_pack(self, board, company, tmp_path, field, longest):
        confirm(board, *self.seen(board, company, field, "x" * longest))
        model, column = field
        assert "x" * longest in str(model.objects.values_list(column, flat=True))
        export_pack(company.organisation, tmp_path / "pack")
        assert not review_pack(tmp_path / "pack").problems

    @pytest.mark.parametrize(("field", "longest"), LONGEST)
    def test_is_no_longer(self, board, company, field, longest):
        _, seen = self.seen(board, company, field, "x" * (longest + 1))
        html = seen.content.decode()
        assert 'id="confirm-form"' not in html
        assert f"{longest} characters" in html


class TestALevel:
    """Spec: organisation 5."""

    @pytest.mark.parametrize(("level", "is_shown"), [("0", False), ("9", True), ("10", False)])
    def test_is_one_that_a_pack_can_have(self, board, company, level, is_shown):
        named = {"name": "archivist", "title": "Archivist", "kind": "worker", "level": level}
        seen = preview(board, add_page(Role, company), "role_form", **named, reason=REASON)
        assert ('id="confirm-form"' in seen.content.decode()) is is_shown


class TestANewRow:
    @pytest.mark.parametrize("model", [Agent, Alias, ContactRule, Group, Role])
    def test_is_of_the_organisation_that_its_page_names(self, board, company, model):
        """Spec: people 8: the person's only organisation may be another one when it is sent."""
        page = board.get(f"{list_page(model)}add/?_popup=1")
        assert page.status_code == 302
        assert page.headers["Location"] == f"?_popup=1&organisation={company.organisation.id}"

    @pytest.mark.parametrize("said", ["", "x", "0x1"])
    def test_has_a_page_that_names_it_by_its_number(self, board, company, said):
        page = board.get(f"{list_page(Role)}add/?organisation={said}")
        assert page.headers["Location"] == f"?organisation={company.organisation.id}"

    def test_is_for_nobody_who_may_not_add_it(self, sign_in, company):
        assert sign_in(PeopleGroup.OBSERVER).get(f"{list_page(Role)}add/").status_code == 403


class TestConfirmation:
    def test_changes_the_policy_once_and_tells_the_ledger_who_and_why(self, board, company, rule):
        before = company.policy_version
        seen = preview(board, change_page(rule), "contactrule_form", types=["info"], reason=REASON)
        answer = confirm(board, change_page(rule), seen)
        rule.refresh_from_db()
        event = newest_event()
        assert answer.status_code == 302
        assert rule.types == ["info"]
        assert company.policy_version == before + 1
        assert (event.action, event.actor, event.reason) == (
            "contact.changed",
            "human:board",
            REASON,
        )
        assert event.details["allowed"] == ["it_manager may send info to any hr_manager"]
        assert event.organisation_id == company.organisation.id

    def test_alone_without_a_preview_is_judged_all_the_same(self, board, company, role):
        page = change_page(role)
        data = filled(board, page, "role_form", files_write="src/", reason=REASON)
        answer = board.post(page, {**data, "_confirm": "1"})
        role.refresh_from_db()
        assert answer.status_code == 422
        assert role.files_write == ["tests/", "reports/qa/"]
        assert newest_event().action == "human.denied"
        assert newest_event().decision == "deny"

    def test_of_a_stale_form_is_refused_clearly_and_changes_nothing(
        self, board, company, rule, role
    ):
        stale = preview(board, change_page(rule), "contactrule_form", types=["info"], reason=REASON)
        fresh = preview(board, change_page(role), "role_form", title="Quality", reason=REASON)
        assert confirm(board, change_page(role), fresh).status_code == 302
        seen = company.policy_version
        answer = confirm(board, change_page(rule), stale)
        rule.refresh_from_db()
        html = answer.content.decode()
        assert answer.status_code == 409
        assert "This record changed after you opened it" in html
        assert REASON in html
        assert rule.types != ["info"]
        assert company.policy_version == seen
        assert (newest_event().action, newest_event().code) == ("human.denied", "VERSION_MISMATCH")

    def test_of_a_form_that_hides_its_version_is_no_way_around(self, board, company, rule):
        page = change_page(rule)
        for wrong in [None, "", "true", "-1", "9" * 30, "1.5"]:
            data = filled(board, page, "contactrule_form", types=["info"], reason=REASON)
            data = {k: v for k, v in data.items() if k != "seen_version"}
            if wrong is not None:
                data["seen_version"] = [wrong]
            board.post(page, {**data, "_confirm": "1"})
            rule.refresh_from_db()
            assert rule.types != ["info"], wrong

    def test_twice_is_once(self, board, company, rule):
        seen = preview(board, change_page(rule), "contactrule_form", types=["info"], reason=REASON)
        confirm(board, change_page(rule), seen)
        after = company.policy_version
        assert confirm(board, change_page(rule), seen).status_code == 409
        assert company.policy_version == after


class TestEveryTable:
    """Each table of the policy through its own form: added, changed, deleted, recorded."""

    def test_roles(self, board, company):
        page = add_page(Role, company)
        seen = preview(
            board,
            page,
            "role_form",
            name="archivist",
            title="Archivist",
            level="3",
            kind="worker",
            tools=["send_mail"],
            files_write="reports/archive/",
            reason=REASON,
        )
        assert confirm(board, page, seen).status_code == 302
        row = Role.objects.get(name="archivist")
        assert (row.organisation, row.tools, row.files_write) == (
            company.organisation,
            ["send_mail"],
            ["reports/archive/"],
        )
        assert newest_event().action == "role.added"
        assert removed(board, row)
        assert newest_event().action == "role.removed"

    def test_roles_keep_each_line_once_as_a_pack_has_it(self, board, company, role):
        page = edit_page(role)
        twice = "docs/private/\n*.doc\ndocs/private/"
        seen = preview(board, page, "role_form", files_deny=twice, reason=REASON)
        assert confirm(board, page, seen).status_code == 302
        role.refresh_from_db()
        assert role.files_deny == ["docs/private/", "*.doc"]

    def test_roles_claim_types_of_tasks_that_there_are(self, board, company, role):
        given = '{"claim_task_type": ["testing", "no_such_type"]}'
        seen = preview(board, edit_page(role), "role_form", permissions=given, reason=REASON)
        assert "a list of task types" in seen.content.decode()
        role.refresh_from_db()
        assert role.permissions == {}

    def test_groups_and_their_members(self, board, company):
        page = add_page(Group, company)
        seen = preview(board, page, "group_form", slug="search", name="Search", reason=REASON)
        assert confirm(board, page, seen).status_code == 302
        group = Group.objects.get(slug="search")
        agent = company.agent("backend_worker")
        seen = preview(
            board, edit_page(agent), "agent_form", group=str(group.id), name="a", reason=REASON
        )
        assert seen.status_code == 422
        assert "exactly one leader" in seen.content.decode()
        seen = preview(
            board,
            edit_page(agent),
            "agent_form",
            group=str(group.id),
            name="a",
            is_leader="on",
            reason=REASON,
        )
        assert confirm(board, edit_page(agent), seen).status_code == 302
        assert current_policy(company.organisation.id).agents["backend_worker"].is_leader

    def test_agents(self, board, company):
        role, above = Role.objects.get(name="backend_worker"), company.agent("it_manager")
        page = f"{add_page(Agent, company)}&role={role.id}&reports_to={above.id}"
        seen = preview(
            board,
            page,
            "agent_form",
            handle="backend_worker_2",
            title="Second",
            reason=REASON,
        )
        assert "backend_worker_2 acts as backend_worker" in seen.content.decode()
        assert "nxs_" in confirm(board, page, seen).content.decode()
        assert "backend_worker_2" in current_policy(company.organisation.id).agents

    def test_agents_have_skills_by_names_that_a_pack_takes(self, board, company):
        page = edit_page(company.agent("research_worker"))
        seen = preview(board, page, "agent_form", skills="Report Writer", reason=REASON)
        assert "is no name" in seen.content.decode()

    def test_agents_in_a_circle_are_refused(self, board, company):
        boss = company.agent("ceo")
        seen = preview(
            board,
            edit_page(boss),
            "agent_form",
            reports_to=str(company.agent("it_manager").id),
            reason=REASON,
        )
        assert seen.status_code == 422
        assert "circle" in seen.content.decode()

    def test_agents_with_a_second_manager(self, board, company):
        agent = company.agent("backend_worker")
        manager = company.agent("product_manager")
        seen = preview(
            board, edit_page(agent), "agent_form", co_managers=[str(manager.id)], reason=REASON
        )
        assert "product_manager manages backend_worker" in seen.content.decode()
        assert agent.co_managers.count() == 0
        assert confirm(board, edit_page(agent), seen).status_code == 302
        assert list(agent.co_managers.all()) == [manager]

    def test_agents_are_never_deleted(self, board, company):
        agent = company.agent("backend_worker")
        assert board.get(page_of(agent, "delete")).status_code == 403
        assert board.post(page_of(agent, "delete"), {"post": "yes"}).status_code == 403

    def test_aliases(self, board, company):
        page = add_page(Alias, company)
        seen = preview(
            board,
            page,
            "alias_form",
            alias="chief",
            agent=str(company.agent("ceo").id),
            reason=REASON,
        )
        assert confirm(board, page, seen).status_code == 302
        policy = current_policy(company.organisation.id)
        assert policy.resolve("chief") is policy.agents["ceo"]

    def test_mail_types(self, board, company):
        row = MailTypeRule.objects.get(name="info")
        seen = preview(
            board,
            change_page(row),
            "mailtyperule_form",
            senders=["ceo"],
            every_role=None,
            reason=REASON,
        )
        assert seen.status_code == 200, seen.content.decode()[-2000:]
        assert confirm(board, change_page(row), seen).status_code == 302
        row.refresh_from_db()
        assert row.senders == ["ceo"]

    def test_contact_rules_with_every_type_or_none(self, board, company):
        rule = ContactRule.objects.get(sender__name="ceo", recipient__name="hr_manager")
        page = change_page(rule)
        for every, types, stored in [("on", [], None), (None, None, [])]:
            seen = preview(
                board, page, "contactrule_form", every_type=every, types=types, reason=REASON
            )
            assert confirm(board, page, seen).status_code == 302
            rule.refresh_from_db()
            assert rule.types == stored

    def test_contact_rules_delete_only_through_the_preview(self, board, company, rule):
        board.post(page_of(rule, "delete"), {"post": "yes"})
        assert ContactRule.objects.filter(id=rule.id).exists()
        assert removed(board, rule)
        assert newest_event().action == "contact.removed"
        assert any("it_manager may send" in fact for fact in newest_event().details["forbidden"])

    def test_tightenings_only_tighten(self, board, company):
        page = add_page(ToolOverride, company)
        loose = preview(
            board, page, "tooloverride_form", tool="run_test", modes=["chat_safe"], reason=REASON
        )
        assert loose.status_code == 422
        assert "can only remove modes" in loose.content.decode()
        seen = preview(
            board,
            page,
            "tooloverride_form",
            tool="run_test",
            role=str(Role.objects.get(name="qa_worker").id),
            reason=REASON,
        )
        assert "qa_worker may call run_test in coding" in seen.content.decode()
        assert confirm(board, page, seen).status_code == 302
        row = ToolOverride.objects.get()
        assert (row.tool, row.modes, row.set_by, row.reason) == (
            "run_test",
            [],
            "human:board",
            REASON,
        )
        assert removed(board, row)
        assert newest_event().action == "tool.restored"

    def test_settings_of_the_organisation(self, board, company):
        page = change_page(company.organisation)
        seen = preview(
            board,
            page,
            "organisation_form",
            setting_enabled_modes="chat_safe",
            setting_escalation_timeout="60",
            reason=REASON,
        )
        assert "sessions may be in coding" in seen.content.decode()
        assert confirm(board, page, seen).status_code == 302
        row = Organisation.objects.get(id=company.organisation.id)
        assert row.settings["enabled_modes"] == ["chat_safe"]
        assert row.settings["escalation_timeout"] == 60
        assert row.policy_version == company.organisation.policy_version + 1

    def test_settings_that_cannot_be_are_explained_beside_their_field(self, board, company):
        page = change_page(company.organisation)
        html = preview(
            board, page, "organisation_form", setting_enabled_modes="god_mode", reason=REASON
        ).content.decode()
        assert "must be a list of chat_safe, coding" in html

    def test_a_name_taken_is_said_before_the_database_says_it(self, board, company):
        answer = preview(
            board,
            add_page(Role, company),
            "role_form",
            name="ceo",
            title="Second",
            level="1",
            kind="executive",
            reason=REASON,
        )
        html = answer.content.decode()
        assert 'id="confirm-form"' not in html
        assert "already exists" in html

    def test_a_role_with_holders_is_not_deleted(self, board, company, role):
        answer = preview(board, page_of(role, "delete"), "removal-form", reason=REASON)
        assert answer.status_code == 422
        assert "still needed by" in answer.content.decode()
        assert Role.objects.filter(id=role.id).exists()


class TestBorders:
    def test_rows_of_another_organisation_cannot_be_chosen(self, board, company):
        from tests.company import load_company

        other = load_company("dev-team")
        agent = company.agent("backend_worker")
        for field, row in [
            ("role", Role.objects.filter(organisation=other.organisation).first()),
            ("reports_to", other.agent("team-lead")),
            ("co_managers", other.agent("team-lead")),
        ]:
            answer = preview(
                board, edit_page(agent), "agent_form", **{field: str(row.id), "reason": REASON}
            )
            assert 'id="confirm-form"' not in answer.content.decode(), field

    def test_a_new_row_asks_for_its_organisation_first(self, board, company):
        from tests.company import load_company

        load_company("dev-team")
        html = board.get(f"{list_page(Role)}add/").content.decode()
        assert "For which organisation?" in html
        assert 'name="reason"' not in html

    def test_activity_is_no_field_of_the_form(self, board, company):
        agent = company.agent("backend_worker")
        page = edit_page(agent)
        data = filled(board, page, "agent_form", title="T", reason=REASON)
        seen = board.post(page, {**data, "active": ""})
        confirm(board, page, seen)
        agent.refresh_from_db()
        assert agent.active
        assert agent.title == "T"

    def test_what_names_a_row_is_no_field_of_the_form(self, board, company, role):
        page = change_page(role)
        data = filled(board, page, "role_form", title="T", reason=REASON)
        confirm(board, page, board.post(page, {**data, "name": "ceo2", "organisation": "999"}))
        role.refresh_from_db()
        assert (role.name, role.organisation_id) == ("qa_worker", company.organisation.id)


def removed(client, row):
    """Delete a row as a person does; whether it is gone."""
    page = page_of(row, "delete")
    seen = preview(client, page, "removal-form", reason=REASON)
    assert type(row).objects.filter(pk=row.pk).exists()
    assert confirm(client, page, seen).status_code == 302
    return not type(row).objects.filter(pk=row.pk).exists()
