"""Where a page in another language refuses: what it means, then the words of the record."""

import ast
from pathlib import Path

import pytest
from django.conf import settings
from django.utils.translation import override

from core.admin.sentences import in_language
from ledger.models import Event
from orgchart.models import Role
from orgchart.policy.violation import MEANINGS
from tests.admin.english import english_on, known_texts
from tests.admin.forms import filled
from tests.admin.places import act_page, change_page
from tests.browser.day import day_of
from tests.sources import parsed

CHINESE = {"HTTP_ACCEPT_LANGUAGE": "zh-CN,zh;q=0.9"}


def assert_says(answer, sentence):
    html = answer.content.decode()
    assert sentence in html
    assert 'class="nx-original"' not in html
    assert english_on(html, known_texts()) == []


def test_an_act_on_a_stale_page(board, hr, company):
    worker = company.agent("backend_worker")
    page = act_page(worker, "deactivate")
    old = filled(board, page, "act-form", reason="旧页面")
    hr.post(page, filled(hr, page, "act-form", reason="先到"))
    assert_says(board.post(page, old, **CHINESE), "在你读取之后已更改")


def test_the_effects_of_an_act(board, company):
    html = board.get(act_page(company.agent("backend_worker"), "deactivate"), **CHINESE)
    assert "backend_worker may " not in html.content.decode()


def test_a_change_that_breaks_an_invariant(board, company):
    role = Role.objects.get(organisation=company.organisation, name="qa_worker")
    page = change_page(role)
    sent = filled(board, page, "role_form", reason="试一试", files_write="tests/\nsrc/")
    html = board.post(page, sent, **CHINESE).content.decode()
    assert "测试代码者不能修改代码" in html
    assert '<code class="nx-code">QA cannot write source</code>' in html
    assert english_on(html, known_texts()) == []


def test_explain(board, company):
    asked = {
        "ask": "mail", "organisation": company.organisation.id, "agent": "backend_worker",
        "recipient": "ceo", "type": "info", "contract": "",
    }  # fmt: skip
    html = board.get("/admin/explain/", asked, **CHINESE).content.decode()
    assert "不能联系这个收件人" in html
    assert '<code class="nx-code">CONTACT_DENIED</code>' in html
    assert "backend_worker 无权联系 ceo。允许的联系人：it_manager" in html
    assert "not authorized" not in html


@pytest.mark.parametrize(
    "address", ["/admin/", "/admin/mailroom/mailrejection/", "/admin/ledger/event/"]
)
def test_lists_of_refusals(board, company, address):
    company.call("backend_worker", "send_mail", to="ceo", type="info", subject="?", body="?")
    html = board.get(address, **CHINESE).content.decode()
    assert '不能联系这个收件人 <code class="nx-code">CONTACT_DENIED</code>' in html


def test_every_invariant_has_a_meaning():
    found = set()
    for file in Path(settings.BASE_DIR, "orgchart", "policy").glob("*.py"):
        for node in ast.walk(parsed(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "BrokenInvariant":
                found.add(ast.literal_eval(node.args[0]))
    assert len(found) > 10
    assert found == MEANINGS.keys()


def test_every_refusal_of_a_day(company):
    day_of(company)
    reasons = {*Event.objects.filter(decision="deny").values_list("reason", flat=True)}
    assert len(reasons) > 5
    with override("zh-hans"):
        assert [reason for reason in sorted(reasons) if in_language(reason) is None] == []
