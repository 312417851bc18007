"""Bodies: what is refused before any rule sees it."""

import json
import re
import tracemalloc
from contextlib import suppress
from time import process_time
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import strictjson
from core.decision import Code, Denied
from core.storable import has_stacked_marks
from core.strictjson import LARGEST, MAX_DEPTH, MAX_KEYS, read_object
from tests.decisions import denied

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(-LARGEST, LARGEST).filter(lambda number: not 0 < abs(number) < 1 / LARGEST)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


class TestReadObject:
    @pytest.mark.parametrize("body", [b"", b"  \n", b"{}"])
    def test_reads_nothing_as_an_empty_object(self, body):
        assert read_object(body) == {}

    @pytest.mark.parametrize(
        "body",
        [
            b"[]",
            b"1",
            b'"x"',
            b"null",
            b"{",
            b"{}{}",
            b"\xff",
            b'{"a": NaN}',
            b'{"a": Infinity}',
            b'{"a": -Infinity}',
            b'{"a": 1e999}',
            b'{"a": 1e65}',
            b'{"a": -1e65}',
            b'{"a": 1e-65}',
            b'{"a": 1, "a": 2}',
            b'{"b": {"a": 1, "a": 1}}',
            b'{"a": "\\u0000"}',
            b'{"\\u0000": 1}',
            b'{"a": "\\ud800"}',
            b'{"a": ["x", "\\udfff"]}',
            b'{"a": "\x00"}',
            b"{'a': 1}",
            b'{"a": 1' + b"0" * 5000 + b"}",
            b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
            b'{"a":' + b"[" * 500 + b"]" * 500 + b"}",
        ],
    )
    def test_refuses_what_is_not_one_plain_object(self, body):
        with pytest.raises(Denied) as refusal:
            read_object(body)
        assert refusal.value.deny.code is Code.INVALID_PARAMS
        assert refusal.value.deny.details

    @pytest.mark.parametrize("number", [b"1e64", b"-1e64", b"1e-64", b"0.0", b"-0e9", b"1e-999"])
    def test_reads_numbers_that_the_database_writes_shortly(self, number):
        """PostgreSQL writes each digit: of 1e300 it makes 301, in every row that a page reads."""
        assert read_object(b'{"a": %s}' % number) == {"a": float(number)}

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            (b'{"ok": 1, "a": "\\u0000"}', "a"),
            (b'{"ok": 1, "a": [{"b": "\\udfff"}]}', "a"),
            (b'{"ok": 1, "a": {"\\u0000": 1}}', "a"),
            (b'{"\\u0000": 1}', "body"),
            (b'{"ok": 1, "a": "x' + b"\\u0301" * 31 + b'"}', "a"),
            (('{"ok": 1, "a": ["x' + "\u0301\u0323" * 16 + '"]}').encode(), "a"),
            (('{"x' + "\u0301" * 31 + '": 1}').encode(), "body"),
        ],
    )
    def test_names_the_field_of_an_odd_text(self, body, field):
        with pytest.raises(Denied) as refusal:
            read_object(body)
        assert list(refusal.value.deny.details) == [field]

    def test_counts_depth_and_not_brackets(self):
        wide = {"a": [{} for _ in range(MAX_DEPTH * 3)]}
        assert read_object(json.dumps(wide).encode()) == wide
        text = {"a": "[" * 100 + '\\"{' * 100}
        assert read_object(json.dumps(text).encode()) == text

    def test_takes_exactly_the_depth_it_names(self):
        inside = b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH
        assert read_object(inside)
        with denied("INVALID_PARAMS"):
            read_object(b'{"a":' + inside + b"}")

    def test_keeps_thirty_marks_on_a_character(self):
        """A text with more cannot be brought into a normal form in linear time."""
        marked = {"a": ("x" + "\u0301" * 30) * 3}
        for body in (json.dumps(marked), json.dumps(marked, ensure_ascii=False)):
            assert read_object(body.encode()) == marked

    @given(st.text(alphabet="a\u0301\u0323\u0f73\uff9e中", max_size=90), st.integers(0, 70))
    def test_finds_a_row_of_marks_wherever_it_begins(self, text, more):
        text += "\u0301" * more
        longest = max(map(len, re.findall("[\u0301\u0323\u0f73\uff9e]+", text)), default=0)
        assert has_stacked_marks(text) is (longest > 30)

    def test_keeps_surrogate_pairs_that_make_a_character(self):
        assert read_object(b'{"a": "\\ud83d\\ude00"}') == {"a": "😀"}

    @given(st.dictionaries(st.text(alphabet="abc", min_size=1), PLAIN, max_size=4))
    def test_reads_back_whatever_is_plain(self, value):
        assert read_object(json.dumps(value).encode()) == value


class TestBounds:
    @pytest.mark.parametrize(
        "body",
        [
            b'{"a": [' + b"[]," * 340_000 + b"[]]}",
            b'{"a": [' + b"1," * 500_000 + b"1]}",
            b'{"a": [' + b'"",' * 250_000 + b'""]}',
            b"{" + b",".join(b'"%d":1' % n for n in range(90_000)) + b"}",
            b'{"a": [' + b"{}," * 10_000 + b"{}]}",
        ],
        ids=["lists", "numbers", "texts", "keys", "objects"],
    )
    def test_refuse_many_elements_before_anything_is_built(self, body, monkeypatch):
        built = []
        monkeypatch.setattr(strictjson, "DECODER", Mock(decode=built.append))
        begun = process_time()
        with pytest.raises(Denied, match="more than 10000 elements"):
            read_object(body)
        assert built == []
        assert process_time() - begun < 0.2

    def test_refuse_an_object_of_many_keys(self):
        body = json.dumps({str(n): 1 for n in range(MAX_KEYS + 1)}).encode()
        with pytest.raises(Denied, match="more than 1000 keys"):
            read_object(body)

    def test_let_marks_within_a_text_pass(self):
        prose = {"a": 'x, [y], {z}, \\" ' * 20_000, "b": "\\"}
        assert read_object(json.dumps(prose).encode()) == prose

    @pytest.mark.parametrize(
        "body",
        [
            b'{"a": "' + b"x, " * 300_000 + b'"}',
            b'{"a": "' + b"," * 10_001 + b"\\n" * 440_000 + b'"}',
            b'{"a": "' + b"," * 10_001 + b'"' + b'""' * 440_000 + b"}",
            b"{" + b",".join(b'"%d":1' % n for n in range(90_000)) + b"}",
            b'{"a": "' + b"," * 10_001 + b'\\"' * 440_000,
            b"{" * 33 + b'"a": "' + b"[{" * 440_000,
        ],
        ids=["prose", "escapes", "texts", "keys", "escaped quotes without end", "text without end"],
    )
    def test_cost_little_memory_and_time(self, body):
        """Each thread keeps what it once took: what one hostile body costs, all of them keep."""
        tracemalloc.start()
        begun = process_time()
        try:
            with suppress(Denied):
                read_object(body)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 4 * len(body)
        assert process_time() - begun < 2

    def test_hold_for_an_unfinished_text(self):
        with denied("INVALID_PARAMS"):
            read_object(b'{"a": "' + b"," * 20_000)
