"""What a role may do with tasks: both forms, every mistake in them, the form that is kept."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from orgchart import catalogue
from orgchart.models import Organisation, Role
from orgchart.packs import export_pack
from orgchart.packs.permissions import Permissions
from orgchart.packs.problems import Notes
from orgchart.packs.schema import validated
from orgchart.packs.source import read_document
from orgchart.packs.values import Form, Known
from tests.orgchart.world import ACME, edited, load, problems, write_pack

SMALL = "    permissions: {claim_task_type: [code_review], update_own_tasks: true}\n"
SEED = """\
    permissions:
      - claim_task_type: [backend_implementation, bug_fix]
      - update_own_tasks
      - comment_on_all_tasks
"""
MEANT = {
    "claim_task_type": ["backend_implementation", "bug_fix"],
    "update_own_tasks": True,
    "comment_on_all_tasks": True,
}


def with_permissions(text):
    return edited("roles.yaml", (SMALL, text))


class Fragment(Form):
    """A file with permissions only."""

    permissions: Permissions


def read(text):
    """What the words after `permissions:` mean, and what is wrong with them."""
    notes = Notes()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "roles.yaml"
        path.write_text(f"permissions: {text}", encoding="utf-8")
        document = read_document(path, notes)
    form = document and validated(Fragment, document, Known(), notes)
    wrong = [f"{Path(p.file).name}:{p.line}: {p.message}; {p.fix}" for p in notes.all()]
    return form.permissions if form else {}, wrong


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("{}", {}),
        ("[]", {}),
        ("[update_own_tasks]", {"update_own_tasks": True}),
        ("[update_own_tasks: false]", {"update_own_tasks": False}),
        ("[claim_task_type]", {"claim_task_type": True}),
        ("{claim_task_type: true}", {"claim_task_type": True}),
        ("{claim_task_type: '*'}", {"claim_task_type": True}),
        ("{claim_task_type: false}", {"claim_task_type": []}),
        ("{claim_task_type: []}", {"claim_task_type": []}),
        ("{claim_task_type: testing}", {"claim_task_type": ["testing"]}),
        ("[claim_task_type: testing]", {"claim_task_type": ["testing"]}),
        ("[{claim_task_type: [testing], update_own_tasks: true}]",
         {"claim_task_type": ["testing"], "update_own_tasks": True}),
    ],
)  # fmt: skip
def test_is_read_as(text, meant):
    assert read(text) == (meant, [])


KEYS = "claim_task_type, update_own_tasks, comment_on_all_tasks"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{fly: true}", "unknown key fly; there are claim_task_type, comment_on_all_tasks, upd"),
        ("[fly]", "unknown key fly; there are claim_task_type"),
        ("{update_own_task: true}", "did you mean update_own_tasks?"),
        ("{claim_task_type: [tessting]}", "no task type 'tessting'; did you mean testing?"),
        ("{claim_task_type: tessting}", "no task type 'tessting'; did you mean testing?"),
        ("{claim_task_type: ['*']}", "no task type '*'; there are api_design, "),
        ("{claim_task_type: [testing, testing]}", "'testing' in claim_task_type is there tw"),
        ("{claim_task_type: ''}", "claim_task_type is empty; give the"),
        ("{claim_task_type: }", "claim_task_type must be a list of task types, this is empty"),
        ("{claim_task_type: 7}", "this is a number; write [a, b], or true for every type"),
        ("{claim_task_type: {a: b}}", "must be a list of task types, this is a mapping"),
        ("{update_own_tasks: 'yes'}", "update_own_tasks must be true or false, this is text; wri"),
        ("[comment_on_all_tasks: 1]", "comment_on_all_tasks must be true or false, this is a nu"),
        ("{comment_on_all_tasks: }", "comment_on_all_tasks must be true or false, this is empty"),
        ("[update_own_tasks, update_own_tasks: false]", "update_own_tasks is set twice"),
        ("[[update_own_tasks]]", f"name or `name: value`, this is a list; write one of {KEYS}"),
        ("[{}]", "must be a name or `name: value`, this is empty; write one of"),
        ("[7]", "must be a name or `name: value`, this is a number"),
        ("all", "permissions must hold `key: value`, this is text"),
    ],
)  # fmt: skip
def test_names_what_is_wrong_with(text, said):
    _, [problem] = read(text)
    assert problem.startswith("roles.yaml:1: ")
    assert said in problem


def test_each_mistake_of_the_list_has_its_own_line(tmp_path):
    text = SEED.replace("bug_fix]", "bug_fx]").replace("comment_on", "coment_on")
    found = problems(tmp_path, with_permissions(text + "      - 7\n"))
    assert [(file, line) for file, line, _ in found] == [("roles.yaml", n) for n in (15, 17, 18)]


def test_types_are_taken_on_trust_where_none_are_declared(monkeypatch):
    monkeypatch.setattr(catalogue, "_task_types", set())
    assert read("{claim_task_type: [review]}") == ({"claim_task_type": ["review"]}, [])


scraps = st.sampled_from(("claim_task_type", "update_own_tasks", "testing", "*", "", "<<", "\0"))
trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.dates() | scraps | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(scraps | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(trees)
@settings(max_examples=200, deadline=None)
def test_whatever_is_listed_is_understood_or_named(value):
    meant, wrong = read(yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n"))
    if not wrong:
        assert read(yaml.safe_dump(meant, default_flow_style=True)) == (meant, [])
        assert set(meant) <= set(MEANT)


@pytest.mark.django_db
class TestTheSpecifiedList:
    def test_is_kept_as_the_mapping(self, tmp_path):
        load(write_pack(tmp_path / "in", with_permissions(SEED)))
        assert Role.objects.get(name="lead").permissions == MEANT

    def test_comes_out_in_the_one_form_and_says_the_same(self, tmp_path):
        first = load(write_pack(tmp_path / "in", with_permissions(SEED))).after
        export_pack(Organisation.objects.get(slug="acme"), tmp_path / "out")
        written = yaml.safe_load((tmp_path / "out/roles.yaml").read_text())
        assert written["roles"]["lead"]["permissions"] == MEANT
        again = load(tmp_path / "out")
        assert not again.changed
        assert again.after.roles["lead"] == first.roles["lead"]

    def test_is_no_change_of_the_mapping(self, tmp_path):
        mapping = f"    permissions: {yaml.safe_dump(MEANT, default_flow_style=True, width=999)}"
        load(write_pack(tmp_path / "in", with_permissions(mapping)))
        assert not load(write_pack(tmp_path / "in", ACME | with_permissions(SEED))).changed
