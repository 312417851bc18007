"""Taking texts apart for a search: any part of a Chinese word is found, no operator slips in."""

import unicodedata
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.storable import MOST_MARKS
from documents.memory.query import (
    JOINER,
    QueryAlternative,
    pairs_query,
    parse_query,
    split_text,
    with_few_marks,
)

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
        words = split_text(text)
        assert words.spaced == spaced
        assert words.lexemes == lexemes

    @given(ANYTHING)
    def test_lexemes_are_one_or_two_characters_without_syntax(self, text):
        for lexeme in split_text(text).lexemes:
            assert 1 <= len(lexeme) <= 2
            assert not set(lexeme) & set("'\\&|!:()<> *")


class TestPairsOf:
    @given(CHINESE, CHINESE, CHINESE)
    def test_of_any_part_are_among_the_words_of_the_whole(self, before, part, after):
        pairs = {pair.strip("'") for pair in pairs_query(part).split(" & ")}
        assert pairs <= set(split_text(before + part + after).lexemes)

    @pytest.mark.parametrize(
        ("text", "pairs"),
        [("数据库", "'数据' & '据库'"), ("库", "'库'"), ("库, 数", "'库' & '数'"), ("words", "")],
    )
    def test_are_asked_for_all(self, text, pairs):
        assert pairs_query(text) == pairs


class TestAskedFor:
    @pytest.mark.parametrize(
        ("query", "ways"),
        [
            ("risk -market or rain", [QueryAlternative("risk -market or rain", "")]),
            ("苹果", [QueryAlternative("", "'苹果'")]),
            ("苹果 香蕉", [QueryAlternative("", "'苹果' & '香蕉'")]),
            ("苹果，香蕉", [QueryAlternative('","', "'苹果' & '香蕉'")]),
            ("-香蕉", [QueryAlternative("", "!('香蕉')")]),
            ("－香蕉", [QueryAlternative("", "!('香蕉')")]),
            ("- 香蕉", [QueryAlternative("", "!('香蕉')")]),
            ("香蕉 -", [QueryAlternative("", "'香蕉'")]),
            ('香蕉 -"" risk', [QueryAlternative("risk", "'香蕉'")]),
            ("--香蕉", [QueryAlternative("", "'香蕉'")]),
            ("-数据库", [QueryAlternative("", "!('数据' & '据库')")]),
            ("risk -投资", [QueryAlternative("risk", "!('投资')")]),
            ("投资 -risk", [QueryAlternative("-risk", "'投资'")]),
            ('投资 -"big risk"', [QueryAlternative('-"big risk"', "'投资'")]),
            ("苹果 or 香蕉", [QueryAlternative("", "'苹果'"), QueryAlternative("", "'香蕉'")]),
            ("苹果 OR risk", [QueryAlternative("", "'苹果'"), QueryAlternative("risk", "")]),
            (
                "苹果 risk or -香蕉",
                [QueryAlternative("risk", "'苹果'"), QueryAlternative("", "!('香蕉')")],
            ),
            ("or 苹果", [QueryAlternative("", "'苹果'")]),
            ("苹果 or", [QueryAlternative("", "'苹果'")]),
            ("苹果 or or 香蕉", [QueryAlternative("", "'苹果'"), QueryAlternative("", "'香蕉'")]),
            ('苹果 "or" 香蕉', [QueryAlternative('"or"', "'苹果' & '香蕉'")]),
            ('"数据库"', [QueryAlternative("", "'数据' & '据库'", ("数据库",))]),
            ('"数据库', [QueryAlternative("", "'数据' & '据库'", ("数据库",))]),
            ('-"数据库"', [QueryAlternative("", "!' '", (), ("数据库",))]),
            (
                '"连接池  timeout"',
                [QueryAlternative('"timeout"', "'连接' & '接池'", ("连接池 timeout",))],
            ),
            ("API数据", [QueryAlternative('"API"', "'数据'")]),
            ("-API数据", [QueryAlternative("", "!' '", (), ("API数据",))]),
            ("数-b or", [QueryAlternative('"-b"', "'数'")]),
        ],
    )
    def test_keeps_quotes_or_and_minus(self, query, ways):
        assert list(parse_query(query)) == ways

    @given(st.text(alphabet="数据 \"'-or|&!():*\\%a", max_size=30))
    def test_lets_no_syntax_into_the_lexemes(self, query):
        for way in parse_query(query):
            bare = way.lexemes.replace("!' '", "")
            assert not set(bare) - set("数据' &!()")


class TestMarks:
    @given(st.text(alphabet="a\u0301\u0344\u0323\u0f73\uff9e库", max_size=200))
    def test_are_few_in_a_row_however_the_text_is_taken_apart(self, text):
        parted = with_few_marks(text)
        apart = unicodedata.normalize("NFKD", parted)
        of_all = groupby(apart, lambda char: unicodedata.combining(char) > 0)
        assert all(len([*run]) <= 2 * MOST_MARKS for is_mark, run in of_all if is_mark)
        assert parted.replace(JOINER, "") == text

    @given(ANYTHING)
    def test_that_are_few_stay_as_they_are(self, text):
        assert with_few_marks(text[:MOST_MARKS]) == text[:MOST_MARKS]
