"""What a code of a refusal means to people, in each language."""

from typing import NamedTuple

import pytest
from django.utils.safestring import SafeString
from django.utils.translation import override

from core.admin.refused import coded, meaning_of, reason_of, refused, refused_as_text
from core.decision import Code, deny
from core.refusals import MEANINGS


class Happened(NamedTuple):
    decision: str
    reason: str


NO = deny(Code.NOT_FOUND, "there is no <agent>", "choose one")


class TestMeanings:
    def test_are_there_for_every_code(self):
        assert set(MEANINGS) == {*Code}

    def test_are_short_enough_for_a_list(self):
        assert max(map(len, MEANINGS.values())) <= 45

    def test_differ(self):
        assert len({*MEANINGS.values()}) == len(MEANINGS)

    @pytest.mark.parametrize("code", ["", "nothing", "PASS"])
    def test_of_another_word_is_nothing(self, code):
        assert meaning_of(code) == ""
        assert coded(code) == code


class TestARefusalOnAPage:
    def test_is_its_sentence_in_english(self):
        with override("en"):
            assert refused(NO) == refused_as_text(NO) == "there is no <agent>. Choose one."

    def test_is_its_sentence_in_another_language(self):
        said = deny(Code.NOT_FOUND, "there is no file <a>", "begin again")
        with override("zh-hans"):
            assert refused(said) == refused_as_text(said) == "没有文件 <a>。重新开始。"

    def test_is_its_meaning_and_the_english_where_no_pattern_fits(self):
        with override("zh-hans"):
            shown = refused(NO)
            assert refused_as_text(NO) == "未找到。 (there is no <agent>. Choose one.)"
        assert isinstance(shown, SafeString)
        assert shown.startswith("未找到。 <small")
        assert 'lang="en">there is no &lt;agent&gt;. Choose one.</small>' in shown

    def test_keeps_the_code_in_small_print(self):
        with override("zh-hans"):
            assert coded("NOT_FOUND") == '未找到 <code class="nx-code">NOT_FOUND</code>'


class TestWhyAnEventHappened:
    def test_is_the_sentence_of_a_refusal(self):
        with override("zh-hans"):
            assert reason_of(Happened("deny", "a is deactivated")) == "a 已停用"
            assert 'lang="en">of 1 &lt; 2' in reason_of(Happened("deny", "of 1 < 2"))

    def test_is_what_people_wrote_elsewhere(self):
        with override("zh-hans"):
            assert reason_of(Happened("allow", "a is deactivated")) == "a is deactivated"
