"""Events in words: every action has its sentence, every detail its name, codes in small print."""

import re

import pytest
from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import override

from core.actions import Action
from core.admin.actors import actor_name, actor_shown
from core.admin.happened import facts_of, happened
from core.detail_words import LABELS
from core.event_words import SENTENCES
from core.events import Event as Made
from ledger.models import Event
from ledger.services import record_alone
from orgchart.models import ApiKey
from tests.browser.day import day_of

SMALL_PRINT = re.compile(r"<(code|script|pre|style)\b.*?</\1>", re.DOTALL)
TAG = re.compile(r"<[^>]*>")


def shown(html):
    """The text of a page without its small print."""
    return TAG.sub(" ", SMALL_PRINT.sub(" ", html))


def bare_codes(html):
    words = set(re.findall(r"[a-z_]+\.[a-z_]+", shown(html)))
    return sorted(words & {str(action) for action in Action})


def change_page_of(table, key):
    return reverse(f"admin:{table}_change", args=[quote(key)])


class TestSentences:
    def test_every_action_has_one_of_its_own(self):
        assert set(SENTENCES) == set(Action)
        assert len(set(SENTENCES.values())) == len(Action)
        assert not [each for each in SENTENCES.values() if "." in each or "_" in each]

    def test_the_code_is_in_small_print(self):
        html = 'Work under a contract passed <code class="nx-code">contract.passed</code>'
        assert happened("contract.passed") == html

    def test_an_action_of_an_older_release_is_itself(self):
        assert happened("horse.sold") == "horse.sold"

    def test_they_are_in_the_language_of_the_page(self):
        with override("zh-hans"):
            assert "合同已签发" in happened("contract.issued")


class TestActors:
    @pytest.mark.parametrize(
        ("actor", "name"),
        [
            ("agent:qa_worker", "qa_worker"),
            ("agent:ada", "ada"),
            ("human:ada", "ada (person)"),
            ("human:a:b", "a:b (person)"),
            ("human:", ""),
            ("system:up", "System (up)"),
            ("ada", "ada"),
            ("", ""),
        ],
    )
    def test_are_called_as_people_call_them(self, actor, name):
        assert actor_name(actor) == name
        assert TAG.sub("", actor_shown(actor)) == name

    def test_are_in_the_language_of_the_page(self):
        with override("zh-hans"):
            assert actor_name("system:up") == "系统（up）"
            assert actor_name("human:ada") == "ada（人员）"

    def test_are_names_on_pages_and_codes_in_files(self, board, company):
        worker = company.agent("qa_worker")
        for by in ("human:ada", "system:up"):
            ApiKey.objects.create(agent=worker, prefix=by[:5], digest=by.encode(), created_by=by)
        address = "/admin/orgchart/apikey/"
        html = board.get(address).content.decode()
        assert 'System (<span translate="no">up</span>)' in html
        assert not re.search("human:ada|system:up", html)
        sent = board.post(f"{address}export/", {"format": "csv"}).getvalue().decode()
        assert "human:ada" in sent
        assert "system:up" in sent

    def test_are_no_codes_on_the_pages_of_a_day(self, board, company):
        day_of(company)
        for address in ("/admin/", "/admin/feed/", "/admin/ledger/event/"):
            html = re.sub(r"<td[^>]*subject.*?</td>|nx-mono\">.*?<|<(script)\b.*?</script>", "",
                          board.get(address).content.decode(), flags=re.DOTALL)  # fmt: skip
            assert not re.search(r">\s*(human|system|agent):\w", html), address


class TestFacts:
    @pytest.mark.parametrize(
        ("details", "name", "value"),
        [
            ({"version": 4}, "version", "4"),
            ({"from_state": "in_progress"}, "state before", "in progress"),
            ({"status": ["pending", "in_progress"]}, "status", "pending → in progress"),
            ({"late": False}, "late", "no"),
            ({"mode": "coding"}, "mode", "May change code"),
            ({"due_at": "2026-11-22T22:35:25.8+00:00"}, "due", "2026-11-22 22:35 UTC"),
            ({"due_at": "0001-01-01T00:00:00+14:00"}, "due", "0001-01-01T00:00:00+14:00"),
            ({"holds": {"unread_mails": 2}}, "open work", "unread mails 2"),
            ({"allowed": ["a", "<b>"]}, "newly allowed", "a &lt;b&gt;"),
            ({"a_new_one": "x_y"}, "a new one", "x_y"),
            ({"changed": {"x_y": {"before": "", "after": "<b>"}}}, "changed", "x y – → &lt;b&gt;"),
        ],
    )
    def test_have_names_and_values_that_people_read(self, details, name, value):
        text = " ".join(shown(facts_of(details)).split())
        assert text == f"{name} {value} As it is recorded (JSON)"

    def test_rights_are_in_the_language_of_the_page(self):
        with override("zh-hans"):
            html = facts_of({"allowed": ["ceo manages it_manager"]}).partition("<pre")[0]
        assert "ceo 管理 it_manager" in html

    def test_empty_ones_are_left_out(self):
        html = shown(facts_of({"failed_by": None, "signals": [], "source": "", "round": 1}))
        assert " ".join(html.split()) == "round 1 As it is recorded (JSON)"
        assert facts_of({}) == ""

    def test_the_record_itself_is_one_click_away(self):
        html = facts_of({"path": "src/<x>.py", "failed_by": None})
        assert "<details" in html
        assert "&quot;path&quot;: &quot;src/&lt;x&gt;.py&quot;" in html
        assert "&quot;failed_by&quot;: null" in html

    def test_a_long_list_is_cut_and_says_so(self):
        assert "and 5 more" in facts_of({"rows": [str(n) for n in range(25)]}).partition("<pre")[0]


class TestPages:
    @pytest.fixture
    def played(self, company):
        return day_of(company)

    def test_every_detail_of_a_day_has_a_name(self, played):
        names = {name for details in Event.objects.values_list("details", flat=True)
                 for name in details}  # fmt: skip
        assert len(names) > 20
        assert names - set(LABELS) == set()

    @pytest.mark.parametrize("address", ["/admin/", "/admin/feed/", "/admin/ledger/event/"])
    def test_show_no_bare_code(self, board, played, address):
        page = board.get(address)
        assert page.status_code == 200
        assert bare_codes(page.content.decode()) == []

    def test_of_rows_show_no_bare_code(self, board, company, played):
        event = Event.objects.filter(action=Action.CONTRACT_SUBMITTED).first()
        contract = event.subject.removeprefix("contract:")
        agent = company.agent("backend_worker").pk
        for address in (
            f"/admin/ledger/event/{event.seq}/change/",
            f"/admin/contracts/contract/{contract}/change/",
            f"/admin/contracts/contract/{contract}/history/",
            f"/admin/orgchart/agent/{agent}/change/",
            f"/admin/search/?s={contract}",
        ):
            page = board.get(address)
            assert page.status_code == 200, address
            assert bare_codes(page.content.decode()) == [], address

    def test_of_an_event_leads_to_what_it_is_about(self, board, hr, company, played):
        contract = Event.objects.filter(action=Action.CONTRACT_SUBMITTED).first()
        agent = record_alone(
            Made(action=Action.AGENT_PAUSED, actor="human:ada", at=timezone.now(),
                 subject="agent:qa_worker", organisation_id=company.organisation.id)
        )  # fmt: skip
        odd = [
            record_alone(
                Made(action=Action.MAIL_READ, actor="agent:ceo", at=timezone.now(), subject=subject)
            )
            for subject in (
                "session:7",
                "document:x",
                "run:99999999999999999999",
                "horse:1",
                "mail",
            )
        ]
        for seq, address in (
            (contract.seq, change_page_of("contracts_contract", contract.subject[9:])),
            (agent, change_page_of("orgchart_agent", company.agent("qa_worker").pk)),
            *((seq, None) for seq in odd),
        ):
            html = board.get(f"/admin/ledger/event/{seq}/change/").content.decode()
            found = re.search(r'class="nx-link" href="([^"]+)">(?:contract|agent):', html)
            assert (found and found[1]) == address

    def test_of_an_event_names_its_details(self, board, played):
        event = Event.objects.filter(action=Action.CONTRACT_SUBMITTED).first()
        html = board.get(f"/admin/ledger/event/{event.seq}/change/").content.decode()
        assert "<dt>state before</dt><dd>in progress</dd>" in html
        assert "&quot;from_state&quot;: &quot;in_progress&quot;" in html
