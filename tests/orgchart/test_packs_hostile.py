"""Whatever stands in the files, the answer is a list of problems and never a crash."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from orgchart.packs import review_pack
from tests.orgchart.world import ACME, write_pack

FILES = sorted(ACME)
SCRAPS = (
    "", ":", "- ", "  ", "\t", "[", "]", "{", "}", "&a ", "*a", "!x ", "!!int ", "|", ">", "?", "#",
    "'", '"', "~", "null", "true", "1e999", ".nan", "0x10", "2026-11-21", "<<: ", "---", "...",
    "\n", "%", "@", "`", "\u2028", "\x85", "\ufeff", "\0", "é", "ﬁ", "../", "/etc/passwd",
    "{agent}", "x" * 300, "-1", "board", "all", "own",
)  # fmt: skip


def check(changes: dict[str, str]) -> list[str]:
    with TemporaryDirectory() as place:
        return [str(p) for p in review_pack(write_pack(Path(place), changes)).problems]


@given(
    st.sampled_from(FILES),
    st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 12), st.sampled_from(SCRAPS)),
        min_size=1,
        max_size=4,
    ),
)
@settings(max_examples=250, deadline=None)
def test_scraps_in_the_text_are_answered(name, edits):
    text = ACME[name]
    for where, cut, scrap in edits:
        at = int(where * len(text))
        text = text[:at] + scrap + text[at + cut :]
    check({name: text})


trees = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.dates()
    | st.sampled_from(SCRAPS)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(SCRAPS) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


def places(tree, path=()):
    """The way to every value of a tree."""
    yield path
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from places(value, (*path, key))


@given(st.sampled_from(FILES), st.integers(0, 10_000), trees)
@settings(max_examples=250, deadline=None)
def test_any_value_in_the_place_of_any_other_is_answered(name, chosen, value):
    tree = {"": yaml.safe_load(ACME[name])}
    ways = list(places(tree))[1:]
    *way, last = ways[chosen % len(ways)]
    at = tree
    for key in way:
        at = at[key]
    at[last] = value
    check({name: yaml.safe_dump(tree[""])})


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"\0" * 100, b"a: b\n" * 5_000, b"[" * 10**6]
)
def test_bytes_that_are_no_pack_are_answered(tmp_path, name, content):
    write_pack(tmp_path)
    (tmp_path / name).write_bytes(content)
    assert review_pack(tmp_path).problems
