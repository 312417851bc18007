"""Taking texts apart for a search: any part of a Chinese word is found, no operator slips in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.memory.words import asked_for, tsquery, words_of

CHINESE = st.text(alphabet="数据库连接池超时的部门会议记录", min_size=1, max_size=12)
ANYTHING = st.text(max_size=60)


class TestWordsOf:
    @pytest.mark.parametrize(
        ("text", "spaced", "lexemes"),
        [
            ("plain words", "plain words", ()),
            ("数据", " ", ("数", "据", "数据")),
            ("a数b", "a b", ("数",)),
            ("ＡＢ", "AB", ()),
            ("", "", ()),
        ],
    )
    def test_parts_scripts_with_spaces_from_those_without(self, text, spaced, lexemes):
        words = words_of(text)
        assert words.spaced == spaced
        assert words.lexemes == lexemes

    @given(CHINESE, CHINESE, CHINESE)
    def test_holds_all_that_a_query_for_any_part_asks(self, before, part, after):
        assert set(asked_for(part).lexemes) <= set(words_of(before + part + after).lexemes)

    @given(ANYTHING)
    def test_lexemes_are_one_or_two_characters_without_syntax(self, text):
        for lexeme in (*words_of(text).lexemes, *asked_for(text).lexemes):
            assert 1 <= len(lexeme) <= 2
            assert not set(lexeme) & set("'\\&|!:()<> *")


class TestTsquery:
    def test_asks_for_all(self):
        assert tsquery(asked_for("数据库").lexemes) == "'数据' & '据库'"

    def test_of_one_character_asks_for_it(self):
        assert tsquery(asked_for("库").lexemes) == "'库'"

    def test_of_none_is_empty(self):
        assert tsquery(asked_for("words").lexemes) == ""
