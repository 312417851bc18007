"""The first page and the page of questions: figures that are true, answers that the rules give."""

import re
from datetime import timedelta
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.permissions import PeopleGroup
from mailroom.delivery import send_as
from mailroom.models import Escalation
from nexus_site.console import counting, dashboard, explain
from orgchart.models import Membership, Organisation, Pause
from orgchart.policy_cache import current_policy
from tests.admin.forms import confirm, preview
from tests.admin.places import change_page
from tests.browser.day import day_of
from tests.company import load_company
from tests.people import join


def everything(right):
    """Somebody who may see it all."""
    return True


def pick(values, names):
    return {name: values[name] for name in names.split()}


@pytest.fixture
def played(company):
    return day_of(company)


def query_of(address):
    return dict(parse_qsl(urlsplit(address).query))


def make_organisations(number, before="z"):
    """Organisations without a day, by name before or after the others."""
    start = Organisation.objects.count()
    return Organisation.objects.bulk_create(
        Organisation(slug=f"{before}{n}", name=f"{before}{n}", policy_version=1)
        for n in range(start - 1, start - 1 + number)
    )


def figure(html, name):
    return re.search(rf"{name}</span><b>([^<]*)</b>", html).group(1)


class TestDashboard:
    def test_counts_the_day(self, board, company, played):
        html = board.get("/admin/").content.decode()
        assert figure(html, "Mails today") == "18"
        assert figure(html, "Blocked actions today") == "12"
        assert figure(html, "Open escalations") == "1"
        assert figure(html, "Active agents") == "9"
        assert "CONTACT_DENIED" in html
        assert "backend_worker ×3" in html
        for state, count in [("pending", 1), ("in_progress", 2), ("passed", 1), ("failed", 0)]:
            assert re.search(rf">{state.replace('_', ' ')}<b>{count}</b>", html), state

    def test_counts_open_tasks_and_leads_to_their_board(self, hr, nobody, company):
        for subject, owner in (("free", None), ("mine", "qa_worker"), ("done", "qa_worker")):
            made = company.call("qa_worker", "task_create", subject=subject).result["id"]
            if owner:
                company.call("qa_worker", "task_update", taskId=made, owner=owner)
        for status in ("in_progress", "completed"):
            company.call("qa_worker", "task_update", taskId=made, status=status)
        html = hr.get("/admin/").content.decode()
        assert figure(html, "Open tasks") == "2"
        assert "1 without an owner" in html
        assert f"/admin/tasks/task/board/?organisation={company.organisation.id}" in html
        assert "Open tasks" not in nobody.get("/admin/").content.decode()

    def test_names_the_last_change_of_who_may_what(self, board, hr, company, played):
        role = company.agent("qa_worker").role
        page = change_page(role)
        confirm(hr, page, preview(hr, page, "role_form", title="Quality", reason="A better name."))
        html = board.get("/admin/").content.decode()
        assert "role.changed" in html
        assert "human:hr" not in html
        assert "by hr (person), <time" in html
        assert "A better name." in html

    def test_raises_the_alarm_for_an_escalation_past_its_time(self, board, company, played):
        Escalation.objects.update(due_at=timezone.now() - timedelta(hours=1))
        assert "1 past due" in board.get("/admin/").content.decode()

    def test_puts_each_hour_where_it_belongs(self, company, now):
        caller = company.caller("it_manager")
        to = company.policy.agents["backend_worker"]
        for hours in (0, 3, 3):
            send_as(
                caller=caller,
                recipient=to,
                mail_type="info",
                subject="s",
                body="b",
                now=now - timedelta(hours=hours),
            )
        (day,) = dashboard.days_of([company.organisation], now, counting.newest_event(), everything)
        mails, refusals = day.charts
        assert (mails.total, refusals.total) == (3, 0)
        begin = dashboard.first_hour(now)
        for (bar,) in mails.chart.stretches:
            end = begin + timedelta(hours=2)
            wanted = sum(begin <= now - timedelta(hours=n) < end for n in (0, 3, 3))
            assert bar.words.endswith(f"UTC: {wanted} mail{'' if wanted == 1 else 's'}")
            assert bar.height == 50 * wanted
            assert query_of(bar.link) == {
                "organisation__id__exact": str(company.organisation.pk),
                "created_at_from_0": f"{begin:%Y-%m-%d}",
                "created_at_from_1": f"{begin:%H:%M:%S}",
                "created_at_to_0": f"{end:%Y-%m-%d}",
                "created_at_to_1": f"{end:%H:%M:%S}",
            }
            begin = end
        assert begin == dashboard.first_hour(now) + timedelta(hours=24) > now

    def test_counts_no_further_than_it_says(self, company, now, monkeypatch):
        monkeypatch.setattr(counting, "SCANNED", 2)
        caller = company.caller("it_manager")
        for _ in range(3):
            send_as(
                caller=caller,
                recipient=company.policy.agents["backend_worker"],
                mail_type="info",
                subject="s",
                body="b",
                now=now,
            )
        (day,) = dashboard.days_of([company.organisation], now, counting.newest_event(), everything)
        assert day.mails == "2+"

    def test_shows_each_only_what_they_may_open(self, hr, nobody, company, played):
        html = hr.get("/admin/").content.decode()
        assert "Active agents" in html
        for secret in ["Mails today", "Blocked actions today", "Open escalations", "sealed"]:
            assert secret not in html
        html = nobody.get("/admin/").content.decode()
        assert "You have no role yet" in html
        assert "NEXUS</a>" not in html

    def test_says_of_seals_only_what_it_knows(self, client, groups, company):
        """How far the whole ledger is sealed is for members of every organisation."""
        user = join(
            get_user_model().objects.create_user("one", is_staff=True), company.organisation
        )
        user.groups.set([groups[PeopleGroup.BOARD]])
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        assert "The ledger has no seal yet." not in client.get("/admin/").content.decode()
        Membership.objects.filter(person=user).delete()
        join(user)
        assert "The ledger has no seal yet." in client.get("/admin/").content.decode()

    def test_asks_nobody_outside_for_anything(self, board, company):
        html = board.get("/admin/").content.decode()
        outside = re.findall(r"""(?:src|href|action)=["'](?:https?:)?//[^"']+""", html)
        assert outside == []

    def test_costs_the_same_with_any_number_of_organisations(self, board, company, played):
        def cost():
            board.get("/admin/")
            with CaptureQueriesContext(connection) as seen:
                page = board.get("/admin/")
            longest = max(len(query["sql"]) for query in seen)
            return len(seen), len(page.content), longest

        alone = cost()
        assert alone[0] <= 26
        found = {}
        for many in (10, 50):
            make_organisations(many - Organisation.objects.count())
            found[many] = cost()
        assert found[10][0] == found[50][0] == alone[0]
        assert abs(found[50][1] - found[10][1]) < 500
        assert abs(found[50][2] - found[10][2]) < 100

    def test_shows_where_a_decision_waits_first_and_leads_to_the_rest(self, board, company, played):
        make_organisations(5, before="a")
        html = board.get("/admin/").content.decode()
        sections = re.findall(r'id="organisation-(\w+)"', html)
        assert len(sections) == dashboard.SHOWN
        assert sections[0] == "nexus"
        assert "All 6 organisations" in html

    def test_shows_a_stopped_organisation_before_a_busy_one(self, company, played):
        stopped = make_organisations(3, before="a")[2]
        Pause.objects.create(
            organisation=stopped, paused_by="human:ada", paused_at=timezone.now(), reason="Fire."
        )
        rows = dashboard.shown_first(Organisation.objects.all(), [], [company.organisation.id])
        assert [row.slug for row in rows][:3] == [stopped.slug, "nexus", "a0"]
        assert "All" not in str(rows[0].own_pause)

    def test_of_few_organisations_names_no_more(self, board, company):
        assert "more-organisations" not in board.get("/admin/").content.decode()

    def test_keeps_the_figures_of_each_organisation_apart(self, company, played, now):
        other = load_company("dev-team").organisation
        ours = [company.organisation, other]
        mine, theirs = dashboard.days_of(ours, now, counting.newest_event(), everything)
        assert (mine.mails, mine.refused, mine.escalations) == ("18", "12", 1)
        assert (theirs.mails, theirs.refused, theirs.escalations) == ("0", "0", 0)
        assert theirs.agents == other.agents.filter(active=True).count()
        assert {n for _, n in theirs.contracts} == {"0"} != {n for _, n in mine.contracts}
        assert mine.changed.organisation_id == company.organisation.id
        assert theirs.changed.organisation_id == other.id


class TestExplain:
    def ask(self, client, company, **question):
        question = {"organisation": str(company.organisation.id), **question}
        return client.get("/admin/explain/", question).content.decode()

    def test_answers_a_mail_with_the_rule_that_decides(self, observer, company):
        html = self.ask(
            observer, company, ask="mail", agent="backend_worker", recipient="ceo", type="info"
        )
        assert "Refused: May not contact this recipient" in html
        assert "CONTACT_DENIED</code>" in html
        assert "contacts of backend_worker (spec: mail 8)" in html
        html = self.ask(
            observer,
            company,
            ask="mail",
            agent="backend_worker",
            recipient="it_manager",
            type="question",
        )
        assert "<strong>Allowed</strong>" in html
        assert "contact backend_worker -&gt; it_manager" in html

    def test_opens_on_two_who_may_write_to_each_other(self, observer, company):
        """Also where an organisation without such two comes first by name."""
        Organisation.objects.create(slug="aaa", name="AAA, of nobody")
        page = observer.get("/admin/explain/")
        proposed = page.context_data["form"].initial
        assert proposed["organisation"] == str(company.organisation.id)
        html = self.ask(observer, company, ask="mail", **pick(proposed, "agent recipient type"))
        assert proposed["agent"] != proposed["recipient"]
        assert "<strong>Allowed</strong>" in html
        back = {"agent": proposed["recipient"], "recipient": proposed["agent"]}
        assert "CONTACT_DENIED" not in self.ask(observer, company, ask="mail", **back, type="info")

    def test_opens_on_one_of_the_first_where_many_have_nothing_to_show(
        self, observer, company, monkeypatch
    ):
        made, read = make_organisations(explain.MOST_TRIED + 5), []
        Organisation.objects.filter(id=company.organisation.id).update(name="~ the last")
        join(get_user_model().objects.get(username="observer"), *made)

        def read_policy(organisation_id):
            read.append(organisation_id)
            return current_policy(organisation_id)

        monkeypatch.setattr(explain, "current_policy", read_policy)
        assert observer.get("/admin/explain/").status_code == 200
        assert len(read) == explain.MOST_TRIED + 1

    def test_opens_on_another_recipient_for_each_agent(self, observer, company):
        for agent in company.policy.agents:
            asked = {"organisation": company.organisation.id, "agent": agent}
            proposed = observer.get("/admin/explain/", asked).context_data["form"].initial
            assert proposed["agent"] == agent != proposed["recipient"]

    def test_answers_for_a_channel_under_a_contract(self, observer, company, played):
        from mailroom.models import ContactGrant

        grant = ContactGrant.objects.get()
        asked = {
            "ask": "mail",
            "agent": "frontend_worker",
            "recipient": "product_manager",
            "type": "question",
        }
        assert "CONTRACT_REQUIRED" in self.ask(observer, company, **asked)
        html = self.ask(observer, company, **asked, contract=grant.contract_ref)
        assert "<strong>Allowed</strong>" in html

    def test_answers_a_tool_in_each_mode(self, observer, company):
        asked = {"ask": "tool", "agent": "qa_worker", "tool": "run_test"}
        assert "MODE_DENIED" in self.ask(observer, company, **asked, mode="chat_safe")
        assert "<strong>Allowed</strong>" in self.ask(observer, company, **asked, mode="coding")

    def test_answers_for_the_board_and_for_who_is_out_of_service(self, observer, company):
        asked = {"ask": "mail", "agent": "ceo", "recipient": "board", "type": "report"}
        assert "<strong>Allowed</strong>" in self.ask(observer, company, **asked)
        agent = company.agent("research_worker")
        from orgchart.staffing import deactivate_agent

        deactivate_agent(
            handle=agent.handle,
            caller=company.person(PeopleGroup.BOARD),
            now=timezone.now(),
            reason="r",
        )
        html = self.ask(
            observer,
            company,
            ask="tool",
            agent="research_worker",
            tool="send_mail",
            mode="chat_safe",
        )
        assert "UNAUTHENTICATED" in html

    @pytest.mark.parametrize(
        "question",
        [
            {},
            {"ask": "x"},
            {"ask": "mail", "agent": "<script>"},
            {"ask": "tool", "agent": "ceo", "tool": "<script>alert(1)</script>", "mode": "god"},
            {"organisation": "99999999999999999999999"},
            {"organisation": "'"},
        ],
    )
    def test_takes_any_question_and_shows_no_markup_of_it(self, observer, company, question):
        answer = observer.get("/admin/explain/", question)
        assert answer.status_code == 200
        assert "<script>alert" not in answer.content.decode()

    def test_is_for_who_may_look_at_the_organisation(self, nobody, company):
        assert nobody.get("/admin/explain/").status_code == 403
        assert Client().get("/admin/explain/").status_code == 302

    def test_says_so_where_there_is_no_organisation(self, observer):
        assert "no organisation yet" in observer.get("/admin/explain/").content.decode()
