"""Sentences of refusals and rules in Chinese: found in the code, taken apart on the page."""

import pytest
from django.utils.translation import override

from core.admin.sentences import in_language
from nexus_site.languages.sentences import sentences_of


def found(source):
    return sentences_of({"rules.py": source})


class TestASentenceOfTheCode:
    @pytest.mark.parametrize(
        ("source", "patterns"),
        [
            ('deny(CODE, f"{who.handle} may not write to {to}")', {"%(a)s may not write to %(b)s"}),
            ('deny(CODE, f"{a} knows {b}, not {a}")', {"%(a)s knows %(b)s, not %(a)s"}),
            ('deny(CODE, "it is late" if late else "it is early")', {"it is late", "it is early"}),
            ('deny(CODE, "a frame ended", rule="a (spec: tasks 1)")', {"a frame ended"}),
            ('STEP = "try it again"\ndeny(CODE, "", STEP)', {"try it again"}),
            ('def f():\n    why = "it is late"\n    deny(CODE, why)', {"it is late"}),
            ('def _no(why):\n    deny(CODE, why)\n_no("it is late")', {"it is late"}),
            ('def no(*, why):\n    deny(CODE, why)\nno(why="it is late")', {"it is late"}),
            ('deny(CODE, step())\ndef step():\n    return "try it again"', {"try it again"}),
            (
                'deny(CODE, f"it is {when}" + (f" and {what} is open" if what else ""))',
                {"it is %(a)s%(b)s", " and %(a)s is open"},
            ),
            ('other("this is data")', set()),
            ('deny(CODE, "tasks")', set()),
        ],
    )  # fmt: skip
    def test_is_followed_to_its_literals(self, source, patterns):
        assert found(source) == patterns


class TestASentenceOnAPage:
    @pytest.mark.parametrize(
        ("english", "chinese"),
        [
            ("a mail is read by its sender and its recipient", "邮件由其发件人和收件人读取"),
            ("backend_worker is deactivated", "backend_worker 已停用"),
            ("contract states (spec: contracts 2)", "合同状态（见 contracts 2）"),
            ("mail: a: Extra inputs are not permitted", "mail：a：不允许多余的参数"),
            (
                "CON-1 is failed and cannot become passed; that state is final",
                "CON-1 的状态为 failed，不能变为 passed；该状态为最终状态",
            ),
            (
                "it is not the turn of your stage: the case is at TEST",
                "还没有轮到你的阶段：案件处于 TEST",
            ),
            ("task_get", "task_get"),
            ("name one of: a or b", "写明其中之一：a 或 b"),
            ("write to one of: a, b and 76 more", "给其中之一写信：a, b 以及另外 76 个"),
        ],
    )  # fmt: skip
    def test_is_put_into_the_translated_pattern(self, english, chinese):
        with override("zh-hans"):
            assert in_language(english) == chinese

    @pytest.mark.parametrize("text", ["The day is over.", "write more tests", "use it twice", ""])
    def test_is_left_where_no_pattern_fits(self, text):
        with override("zh-hans"):
            assert in_language(text) is None

    def test_is_as_it_is_in_english(self):
        with override("en"):
            assert in_language("anything at all") == "anything at all"
