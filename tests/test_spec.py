"""The specification is whole, and every reference to a rule leads to one."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SPEC = ROOT / "docs" / "spec"
CHAPTERS = {page.stem: page for page in sorted(SPEC.glob("*.md")) if page.stem != "README"}

HEADING = re.compile(r'<a id="(\w+-\d+)"></a>\n### (\w+) (\d+)\. \S')
RULE = r"[a-z]+\s\d+"
CITED = re.compile(rf"\b[Ss]pec: ({RULE}(?:,\s+(?:# )?{RULE})*)(?![\w.]*\d)")
LINKED = re.compile(r"\[([a-z]+) (\d+)\]\(([^)\s]*?)(\w+)\.md(?:#([^)\s]+))?\)")
CLAIMED = re.compile(r"\b[S]pec:|\([s]pec:")
CLOSED = re.compile(
    r"\bseed 00\d|(?<!spec/)\b(?:decisions|wire|hostile|design)\.md\b|\.\./shared\b"
    r"|\((?:wire|design)(?:\)|: )|(?<!RFC \d\d\d\d )\N{SECTION SIGN}"
)
"""Names of documents that a reader of this repository cannot open."""


def tracked():
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def texts():
    """Every tracked file that holds text, outside the specification, by its path."""
    found = {}
    for path in tracked():
        if SPEC in path.parents or not path.is_file():
            continue
        try:
            found[str(path.relative_to(ROOT))] = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
    return found


TEXTS = texts()


def rules():
    return {
        (chapter, int(number))
        for page in CHAPTERS.values()
        for _, chapter, number in HEADING.findall(page.read_text("utf-8"))
    }


RULES = rules()


def cited_in(text):
    """Every rule that the text names, and every citation in another form than the two."""
    found = set()
    for cited in CITED.finditer(text):
        for rule in re.findall(r"([a-z]+)\s(\d+)", cited[1]):
            found.add((rule[0], int(rule[1])))
    odd = [
        text[claim.start() : claim.start() + 40]
        for claim in CLAIMED.finditer(text)
        if not CITED.match(text, claim.end() - len("spec:"))
    ]
    found |= {(chapter, int(number)) for chapter, number, *_ in linked_in(text)}
    return found, odd


def linked_in(text):
    return [
        (chapter, number, page, anchor)
        for chapter, number, _, page, anchor in LINKED.findall(text)
        if chapter in CHAPTERS
    ]


class TestSpecification:
    def test_numbers_each_chapter_from_one_without_gaps(self):
        for name, page in CHAPTERS.items():
            found = HEADING.findall(page.read_text("utf-8"))
            assert [int(number) for _, _, number in found] == list(range(1, len(found) + 1)), name
            assert {chapter for _, chapter, _ in found} == {name}
            assert [anchor for anchor, *_ in found] == [f"{name}-{n}" for _, _, n in found]

    def test_has_no_heading_of_another_form(self):
        for page in CHAPTERS.values():
            text = page.read_text("utf-8")
            assert text.count("\n### ") == len(HEADING.findall(text)), page.name

    def test_states_each_rule_and_where_it_comes_from(self):
        for page in CHAPTERS.values():
            for rule in page.read_text("utf-8").split("\n### ")[1:]:
                lines = [line for line in rule.split("\n")[1:] if line and "<a id" not in line]
                assert lines[-1].startswith("Source: "), rule
                assert len(lines) > 1, rule

    def test_breaks_long_rules_into_points(self):
        for page in CHAPTERS.values():
            for line in page.read_text("utf-8").split("\n"):
                assert len(line.split()) <= 120, line

    def test_is_listed_on_its_first_page(self):
        first = (SPEC / "README.md").read_text("utf-8")
        listed = re.findall(r"^\| \[(\w+)\]\(\1\.md\) \|", first, re.MULTILINE)
        assert sorted(listed) == sorted(CHAPTERS)

    @pytest.mark.parametrize("page", ["README", *CHAPTERS])
    def test_refers_to_rules_that_exist(self, page):
        text = (SPEC / f"{page}.md").read_text("utf-8")
        for chapter, number, target, anchor in linked_in(text):
            assert (chapter, int(number)) in RULES
            assert (target, anchor) == (chapter, f"{chapter}-{number}")


class TestReferences:
    def test_lead_to_rules_that_exist(self):
        wrong = {}
        for name, text in TEXTS.items():
            found, odd = cited_in(text)
            if (found - RULES) or odd:
                wrong[name] = sorted(found - RULES) + odd
        assert wrong == {}

    def test_link_to_the_page_of_the_rule_they_name(self):
        for name, text in TEXTS.items():
            for chapter, number, target, anchor in linked_in(text):
                assert target == chapter, name
                assert anchor in ("", f"{chapter}-{number}"), name

    def test_name_no_document_that_a_reader_cannot_open(self):
        wrong = {
            name: sorted(found)
            for name, text in TEXTS.items()
            if (found := {text[m.start() : m.end() + 20] for m in CLOSED.finditer(text)})
        }
        assert wrong == {}


class TestTheseChecks:
    """Each of them can fail."""

    def test_find_a_rule_that_does_not_exist(self):
        planted = "(S" + "pec: mail 1, tasks 9999) and [mail " + "7777](spec/mail.md)"
        assert cited_in(planted)[0] - RULES == {("tasks", 9999), ("mail", 7777)}

    @pytest.mark.parametrize("form", ["pec: mail", "pec:mail 1", "pec: mail 1.2", "pec: Mail 1"])
    def test_find_a_reference_of_another_form(self, form):
        assert cited_in("S" + form)[1] != []

    @pytest.mark.parametrize(
        "name",
        [f"seed {n:03}" for n in range(5)]
        + [f"{page}.{'md'}" for page in ("decisions", "wire", "hostile", "design")]
        + ["../" + "shared", "\N{SECTION SIGN}4.5", "(" + "wire)", "(" + "wire: /me)"],
    )
    def test_find_the_name_of_a_closed_document(self, name):
        assert CLOSED.search(f"as {name} says") is not None

    def test_see_the_files_that_are_tracked(self):
        assert {"README.md", "manage.py", "tests/test_spec.py"} <= set(TEXTS)
