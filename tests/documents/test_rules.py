"""Names, departments, marks and days: pure."""

import unicodedata
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decision import Allow, Code, Deny
from documents import rules
from documents.rules import TimeSpan
from orgchart.policy.parties import BOARD_PARTY
from orgchart.policy.paths import normal_path
from orgchart.policy.vocabulary import Visibility
from tests.oracle.reading import compiled_nexus

BY_CONTACT = {"task_visibility": Visibility.CONTACTS}
NOW = datetime(2026, 2, 19, 9, 30, 0, 123456, tzinfo=UTC)


@pytest.fixture(scope="module")
def nexus():
    return compiled_nexus()


class TestSlug:
    @pytest.mark.parametrize(
        ("title", "slug"),
        [
            ("Q1 Decision: hire two", "q1-decision-hire-two"),
            ("季度 决策:雇用两人", "季度-决策-雇用两人"),
            ("Été à Zürich", "été-à-zürich"),
            ("e\u0301te\u0301", "été"),
            ("../../etc/passwd", "etc-passwd"),
            (".env", "env"),
            ("a/b\\c\x00d\ne", "a-b-c-d-e"),
            ("-----", "untitled"),
            ("🎉🎉", "untitled"),
            ("\u202egnp.exe", "gnp-exe"),
            ("हिन्दी रिपोर्ट", "हिन्दी-रिपोर्ट"),
            ("ＦＵＬＬ　width", "full-width"),
        ],
    )
    def test_keeps_letters_of_any_script_and_nothing_else(self, title, slug):
        assert rules.slug_of(title) == slug

    def test_is_cut_between_characters(self):
        slug = rules.slug_of("决" * 200)
        assert slug == "决" * 26
        assert len(slug.encode()) <= 80

    @given(st.text(max_size=300))
    def test_is_a_plain_name_whatever_the_title(self, title):
        slug = rules.slug_of(title)
        assert slug
        assert len(slug.encode()) <= 80
        assert not set("./\\ ") & set(slug)
        assert unicodedata.normalize("NFC", slug) == slug
        path = "agents/ceo/notes/" + rules.file_name(title, NOW)
        assert normal_path(path) == path


class TestFileName:
    def test_carries_the_time_in_utc(self):
        assert rules.file_name("A b", NOW) == "20260219093000123456-a-b.md"
        elsewhere = NOW.astimezone(timezone(timedelta(hours=8)))
        assert rules.file_name("A b", elsewhere) == "20260219093000123456-a-b.md"


DEPARTMENTS = {
    "ceo": "general",
    "it_manager": "tech",
    "hr_manager": "hr",
    "product_manager": "product",
    "backend_worker": "tech",
    "frontend_worker": "tech",
    "devops_worker": "tech",
    "qa_worker": "qa",
    "research_worker": "research",
}


class TestDepartment:
    @pytest.mark.parametrize(("handle", "department"), DEPARTMENTS.items())
    def test_is_the_folder_that_the_scopes_name(self, nexus, handle, department):
        assert rules.department_of(nexus.agents[handle], nexus) == department

    def test_of_a_new_worker_is_its_managers(self, nexus):
        clerk = replace(
            nexus.agents["backend_worker"],
            handle="clerk",
            managers=("hr_manager",),
            reports_to="hr_manager",
        )
        assert rules.department_of(clerk, nexus) == "hr"

    def test_stays_where_the_manager_was_deactivated(self, nexus):
        it = replace(nexus.agents["it_manager"], active=False)
        backend = replace(
            nexus.agents["backend_worker"], managers=("ceo",), reports_to="it_manager"
        )
        policy = replace(
            nexus, agents={**nexus.agents, "it_manager": it, "backend_worker": backend}
        )
        assert rules.department_of(backend, policy) == "tech"

    def test_of_nobodys_worker_is_its_group(self, nexus):
        lone = replace(
            nexus.agents["backend_worker"], managers=("board",), reports_to="", group="investment"
        )
        assert rules.department_of(lone, nexus) == "investment"

    @pytest.mark.parametrize(
        "scope",
        ["reports/", "reports/a.md", "reports/tech/deep/", "reports-evil/tech/", "x/reports/y/"],
    )
    def test_is_never_read_from_another_kind_of_scope(self, nexus, scope):
        role = nexus.roles["hr_manager"]
        files = replace(role.files, read=(scope,), write=())
        policy = replace(nexus, roles={**nexus.roles, "hr_manager": replace(role, files=files)})
        assert rules.department_of(policy.agents["hr_manager"], policy) == "general"

    def test_ends_in_a_circle_of_managers(self, nexus):
        one = replace(nexus.agents["ceo"], handle="one", managers=("two",), reports_to="two")
        two = replace(nexus.agents["ceo"], handle="two", managers=("one",), reports_to="one")
        policy = replace(nexus, agents={"one": one, "two": two})
        assert rules.department_of(one, policy) == "general"


class TestMarkForBoard:
    def test_is_the_top_agents_alone(self, nexus):
        for agent in nexus.agents.values():
            decision = rules.can_mark_for_board(agent, 0)
            if agent.handle == "ceo":
                assert isinstance(decision, Allow)
            else:
                assert isinstance(decision, Deny)
                assert decision.code is Code.LEVEL_DENIED
                assert agent.superior in decision.next_action

    def test_is_limited_in_an_hour(self, nexus):
        most = rules.MOST_FOR_BOARD
        assert isinstance(rules.can_mark_for_board(nexus.agents["ceo"], most - 1), Allow)
        refused = rules.can_mark_for_board(nexus.agents["ceo"], most)
        assert (refused.code, refused.details["retry_after"]) == (Code.RATE_LIMITED, 3600)


class TestTimeSpan:
    @pytest.mark.parametrize(
        ("text", "first", "after"),
        [
            ("2026-01-01..2026-01-31", (2026, 1, 1), (2026, 2, 1)),
            ("2026-01-31", (2026, 1, 31), (2026, 2, 1)),
            ("2024-02-28..2024-02-29", (2024, 2, 28), (2024, 3, 1)),
        ],
    )
    def test_holds_both_its_days(self, text, first, after):
        assert rules.parse_date_range(text) == TimeSpan(
            datetime(*first, tzinfo=UTC), datetime(*after, tzinfo=UTC)
        )

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "..",
            "2026-01-31..2026-01-01",
            "2026-02-30",
            "2026-1-1",
            "20260101",
            "yesterday",
            "2026-01-01..",
            "..2026-01-01",
            "2026-01-01...2026-01-02",
            "9999-12-31",
            "2026-W01-1",
            "2026-01-01..2026-01-02..2026-01-03",
            "２０２６-01-01",
            "2026-01-01T00:00",
        ],
    )
    def test_is_refused_when_it_is_none(self, text):
        with pytest.raises(ValueError, match=r"^(must be a day|ends before it begins)"):
            rules.parse_date_range(text)


class TestUnreadCode:
    """Spec: mail 44."""

    @pytest.mark.parametrize(
        ("path", "handle", "is_unread"),
        [
            ("src/app.py", "backend_worker", False), ("src/app.py", "hr_manager", True),
            ("docs/plan.md", "hr_manager", False), ("reports/q1.md", "hr_manager", False),
        ],
    )  # fmt: skip
    def test_is_code_for_a_role_without_a_tool_that_reads_it(self, nexus, path, handle, is_unread):
        assert rules.is_unread_code(path, nexus.agents[handle], nexus) is is_unread

    def test_is_code_for_a_role_that_is_denied_the_tools(self, nexus):
        role = nexus.roles["backend_worker"]
        denied = replace(role, denied_tools=role.denied_tools | rules.READ_CODE)
        policy = replace(nexus, roles={**nexus.roles, role.name: denied})
        assert rules.is_unread_code("src/app.py", policy.agents["backend_worker"], policy)


class TestReading:
    """Spec: files 14, files 22, mail 16."""

    @pytest.mark.parametrize(
        ("author", "reader", "reads"),
        [
            ("qa_worker", "qa_worker", True), ("qa_worker", "it_manager", True),
            ("qa_worker", "ceo", True), ("qa_worker", "product_manager", False),
            ("qa_worker", "backend_worker", False), ("it_manager", "qa_worker", False),
            ("frontend_worker", "product_manager", True),
        ],
    )  # fmt: skip
    def test_of_reports_is_for_their_author_and_those_above(self, nexus, author, reader, reads):
        agents = nexus.agents
        assert rules.may_read_reports_of(agents[author], agents[reader], nexus) is reads
        assert (agents[author].id in rules.authors_below(agents[reader], nexus)) is reads

    @pytest.mark.parametrize(
        ("path", "author", "reader", "reads"),
        [
            ("reports/hr/x.md", "hr_manager", "hr_manager", True),  # its author
            ("reports/hr/x.md", "it_manager", "it_manager", True),  # … also where it is denied
            ("reports/hr/x.md", "qa_worker", "it_manager", False),  # a denial, to one above too
            ("reports/hr/x.md", "qa_worker", "hr_manager", True),  # the role's scope
            ("reports/hr/x.md", None, "ceo", True),  # … of an author who left the company
            ("docs/x.md", None, "it_manager", False),
            ("docs/x.md", "qa_worker", "it_manager", True),  # a place above the author
            ("docs/x.md", "qa_worker", "backend_worker", False),
            ("docs/x.md", "qa_worker", "product_manager", False),
        ],
    )
    def test_of_a_report_is_by_author_scope_and_place(self, nexus, path, author, reader, reads):
        found = rules.may_read_report(path, nexus.agents.get(author), nexus.agents[reader], nexus)
        assert found is reads

    @pytest.mark.parametrize(
        ("path", "reader", "is_denied"),
        [
            ("reports/hr/x.md", "it_manager", True), ("reports/hr/x.md", "ceo", False),
            ("src/app.py", "hr_manager", True), ("src/app.py", "backend_worker", False),
        ],
    )  # fmt: skip
    def test_is_denied_by_the_deny_list_and_of_code_by_the_tools(
        self, nexus, path, reader, is_denied
    ):
        assert rules.is_denied_to(path, nexus.agents[reader], nexus) is is_denied

    @pytest.mark.parametrize(
        ("writer", "reader", "reads"),
        [
            ("backend_worker", "qa_worker", False), ("backend_worker", "it_manager", True),
            ("it_manager", "research_worker", True), ("hr_manager", "it_manager", True),
        ],
    )  # fmt: skip
    def test_of_shared_files_is_not_from_worker_to_worker(self, nexus, writer, reader, reads):
        agents, policy = nexus.agents, replace(nexus, settings=BY_CONTACT)
        assert rules.may_read_shared(agents[writer], agents[reader], policy) is reads

    def test_of_shared_files_is_for_a_worker_that_the_writer_may_write_to(self, nexus):
        writer, reader = (nexus.agents[name] for name in ("backend_worker", "qa_worker"))
        rule = replace(
            nexus.contacts["backend_worker", "it_manager"], recipient=reader.role, relation="any"
        )
        contacts = {**nexus.contacts, (writer.role, reader.role): rule}
        policy = replace(nexus, contacts=contacts, settings=BY_CONTACT)
        assert rules.may_read_shared(writer, reader, policy)

    def test_of_a_department_is_of_its_members_below(self, nexus):
        department = rules.department_of(nexus.agents["it_manager"], nexus)
        for reader, is_above in (("it_manager", True), ("qa_worker", False)):
            found = rules.has_members_below(nexus.agents[reader], department, nexus)
            assert found is is_above


class TestTheDepartment:
    """Spec: files 13."""

    def test_of_a_report_is_that_of_who_gave_the_work(self, nexus):
        qa, manager, ceo = (nexus.agents[name] for name in ("qa_worker", "it_manager", "ceo"))
        own, given = (rules.department_of(agent, nexus) for agent in (qa, manager))
        assert own != given
        assert rules.department_to_file_in(qa, manager, nexus) == given
        assert rules.department_to_file_in(qa, BOARD_PARTY, nexus) == own
        assert rules.department_to_file_in(manager, ceo, nexus) == given

    def test_is_a_folder_that_a_role_writes_and_no_file(self, nexus):
        role = nexus.roles["qa_worker"]
        for path, department in (("reports/x/", "x"), ("reports/x", ""), ("reports/x/y", "")):
            files = replace(role.files, write=(path,))
            policy = replace(nexus, roles={**nexus.roles, role.name: replace(role, files=files)})
            found = rules.department_of(policy.agents["qa_worker"], policy)
            above = rules.department_of(policy.agents["it_manager"], policy)
            assert found == (department or above)
