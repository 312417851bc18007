"""Every mistake in a pack is named with its file, its line, and how to mend it."""

import pytest

from orgchart import catalogue
from orgchart.packs import BadPack, review_pack, values
from orgchart.packs.checking import sound_pack
from orgchart.packs.pack import policy_of
from tests.orgchart.world import PACKS, SHIPPED, edited, problems, write_pack


@pytest.mark.parametrize("name", SHIPPED)
def test_nothing_is_wrong_with_what_is_shipped(name):
    assert review_pack(PACKS / name).problems == []


def test_nothing_is_wrong_with_the_small_pack(tmp_path):
    assert problems(tmp_path) == []


ORG, ROLES, MAIL, HAND = (
    "organisation.yaml",
    "roles.yaml",
    "mail-protocol.yaml",
    "agents/hand_one.yaml",
)

MISTAKES = [
    # one file's form
    (ORG, "name: Acme", "name: Acme\nname: Bcme", 3, "name is set twice (first on line 2)"),
    (ORG, "name: Acme", "nmae: Acme", 2, "unknown key nmae; did you mean name?"),
    (ORG, "name: Acme", "", 1, "name is missing"),
    (ORG, "name: Acme", "name: 12", 2, "name must be text, this is a number"),
    (ORG, "name: Acme", "name: yes", 2, "name must be text, this is true or false"),
    (ORG, "name: Acme", "name: [Acme]", 2, "name must be text, this is a list"),
    (ORG, "name: Acme", "name: {a: b}", 2, "name must be text, this is a mapping"),
    (ORG, "name: Acme", "name:", 2, "name must be text, this is empty"),
    (ORG, "name: Acme", "name: 2026-01-01", 2, "name must be text, this is a date"),
    (ORG, "name: Acme", "name: ' '", 2, "name is empty"),
    (ORG, "name: Acme", f"name: {'x' * 201}", 2, "name is longer than 200 characters"),
    (ORG, "name: Acme", 'name: "a\\0b"', 2, "name holds a character that cannot be stored"),
    (ORG, "name: Acme", 'name: "\\ud800"', 2, "this is no YAML"),
    (ORG, "name: Acme", "1: Acme", 2, "a key must be text"),
    (ORG, "name: Acme", "[a]: Acme", 2, "a key must be text"),
    (ORG, "organisation: acme", "organisation: Acme", 1, "the organisation 'Acme' is no name"),
    (ORG, "organisation: acme", "organisation: аcme", 1, "the organisation 'аcme' is no name"),
    (ORG, "organisation: acme", "organisation: ../etc", 1, "is no name"),
    (ORG, "max_rounds: 5", "max_round: 5", 4, "there is no setting max_round; did you mean"),
    (ORG, "max_rounds: 5", "max_rounds: many", 4, "max_rounds: must be a whole number"),
    (ORG, "[chat_safe, coding]", "[coding]", 4, "must hold chat_safe"),
    (ORG, "{enabled", "[{enabled", 4, "this is no YAML"),
    (ORG, "chief: boss", "chief: bos", 6, "there is no agent 'bos'; did you mean boss?"),
    (ORG, "chief: boss", "lead: boss", 6, "the alias lead is a name already"),
    (ORG, "chief: boss", "board: boss", 6, "the alias board is a name already"),
    (ORG, "chief: boss", "Chief: boss", 6, "the alias 'Chief' is no name"),
    (ORG, "tool: web_search", "tool: web_serch", 8, "there is no tool 'web_serch'; did you mean"),
    (ORG, "role: lead", "role: led", 8, "there is no role 'led'"),
    (ORG, "role: lead", "agent: nobody", 8, "there is no agent 'nobody'"),
    (ORG, "role: lead", "role: lead, agent: boss", 8, "names both an agent and a role"),
    (ORG, "modes: []", "modes: [fast]", 8, "there is no mode 'fast'"),
    # roles
    (ROLES, "level: 2", "level: 0", 9, "level must be a whole number from 1 to 9"),
    (ROLES, "level: 2", "level: 10", 9, "level must be a whole number from 1 to 9"),
    (ROLES, "level: 2", "level: '2'", 9, "level must be a whole number from 1 to 9"),
    (ROLES, "level: 2", "level: true", 9, "level must be a whole number from 1 to 9"),
    (ROLES, "level: 2", "level: 1_0", 9, "level must be a whole number from 1 to 9"),
    (ROLES, "level: 2", "", 7, "level is missing"),
    (ROLES, "kind: manager", "kind: managr", 10, "kind cannot be 'managr'; did you mean manager?"),
    (ROLES, "read_code", "read_cod", 12, "there is no tool read_cod; did you mean read_code?"),
    (ROLES, "read_code", "read_inbox", 12, "read_inbox comes by itself (builtin)"),
    (ROLES, "read_code", "send_mail", 12, "'send_mail' in tools is there twice"),
    (ROLES, "read_code", "''", 12, "'' in tools is empty"),
    (
        ROLES,
        "[send_mail, escalate, create_contract, read_code, web_search]",
        "send_mail",
        12,
        "a list",
    ),
    (ROLES, "[git_push]", "[git_psh]", 20, "there is no tool 'git_psh'; did you mean git_push?"),
    (ROLES, "[git_push]", "[return_result]", 20, "return_result is built in and cannot be denied"),
    (ORG, "tool: web_search", "tool: read_inbox", 8, "read_inbox is built in and cannot be denied"),
    (ROLES, "task_lead: true", "task_lead: 1", 13, "task_lead must be true or false"),
    (ROLES, "permissions: {", "permissions: [{", 14, "this is no YAML"),
    (ORG, "max_rounds: 5", "max_rounds: 2026-01-01", 4, "must be a whole number"),
    (ROLES, "task_lead: true", "offices: [JUDGE]", 13, "there is no office 'JUDGE'"),
    (ROLES, "contract: write", "contract: all", 26, "contract cannot be 'all'"),
    (ROLES, "contract: write", "execute: [docs/]", 26, "unknown key execute"),
    (ROLES, "[docs/]", "[/docs/]", 23, "the path '/docs/' is none: it must be relative"),
    (ROLES, "[docs/]", "[docs/../src/]", 23, "it holds an empty, '.' or '..' part"),
    (ROLES, "[docs/]", "[docs//a]", 23, "it holds an empty, '.' or '..' part"),
    (ROLES, "[docs/]", "['docs/*.md']", 23, "a scope holds no pattern"),
    (ROLES, "[docs/]", "['agents/{group}/']", 23, "a scope holds no pattern, only `{agent}`"),
    (ROLES, "secret/place/", "'secret/*.txt'", 25, "a pattern with a folder is taken literally"),
    (ROLES, "secret/place/", "'{who}'", 25, "the only placeholder is `{agent}`"),
    (ROLES, "  hand:", "  Hand:", 15, "the role 'Hand' is no name"),
    (ROLES, "  hand:", "  board:", 15, "`board` names the humans"),
    (ROLES, "  hand:", "  lead:", 15, "lead is set twice (first on line 7)"),
    # the protocol
    (MAIL, "[lead, hand]}\n  contract", "[led]}\n  contract", 3, "there is no role or kind 'led'"),
    (MAIL, "senders: all", "senders: everybody", 2, "must be a list, this is text; or `all`"),
    (MAIL, "senders: all, ", "", 2, "senders is missing"),
    (MAIL, "to: superior", "to: boss", 5, "to cannot be 'boss'; there are superior"),
    (MAIL, "issued_by: [gen", "issued_by: [Gen", 4, "there is no tool 'Generate_contract'"),
    (MAIL, "  info:", "  Info:", 2, "the mail type 'Info' is no name"),
    (MAIL, "{from: boss, to: lead}", "{from: boss, to: led}", 7, "there is no role 'led'"),
    (MAIL, "{from: boss, to: lead}", "{from: boss}", 7, "to is missing"),
    (MAIL, "{from: boss, to: lead}", "{to: lead}", 7, "from is missing"),
    (MAIL, "{from: boss, to: lead}", "boss", 7, "each of contacts must hold `key: value`"),
    (MAIL, "{from: boss, to: lead}", "{from: lead, to: boss}", 8, "is there twice"),
    (MAIL, "[report, escalation]", "[reprt]", 10, "there is no mail type 'reprt'; did you mean"),
    (MAIL, "relation: own}\n  - {from: h", "relation: mine}\n  - {from: h", 9, "cannot be 'mine'"),
    (MAIL, "{from: boss, types", "{from: boss, to: lead, types", 12, "unknown key to"),
    # people
    (HAND, "role: hand", "role: ''", 1, "role is empty; give the role"),
    (HAND, "role: hand", "role: hnd", 1, "there is no role 'hnd'; did you mean hand?"),
    (HAND, "reports_to: lead", "reports_to: led", 3, "there is no superior 'led'"),
    (HAND, "reports_to: lead", "reports_to: hand_one", 3, "there is no superior 'hand_one'"),
    ("agents/hand_two.yaml", "reports_to: other_lead", "", 1, "reports_to is missing"),
    (HAND, "[other_lead]", "[othr_lead]", 4, "there is no co-manager 'othr_lead'"),
    (HAND, "[other_lead]", "[lead]", 4, "lead is its superior already"),
    (HAND, "[other_lead]", "other_lead", 4, "co_managers must be a list"),
    (HAND, "group: crew", "group: crw", 5, "there is no group 'crw'; did you mean crew?"),
    (HAND, "name: one", "", 1, "name is missing; an address is `group.name`"),
    (HAND, "is_leader: false\n", "", 1, "is_leader is missing; add `is_leader: true` to one"),
    (HAND, "group: crew", "", 1, "group is missing; an address is `group.name`"),
    (HAND, "name: one", "name: One", 6, "the name 'One' is no name"),
    (HAND, "skills", "skils", 8, "unknown key skils; did you mean skills?"),
    (HAND, "is_leader: false", "is_leader: true\nactive: false", 7, "leads no group"),
    ("groups/crew.yaml", "group: crew", "group: crow", 1, "group 'crow' is in crew.yaml"),
    ("groups/crew.yaml", "name: Crew", "nam: Crew", 2, "unknown key nam"),
    # what no file alone shows
    (HAND, "reports_to: lead", "reports_to: hand_two", 1, "hand_two (level 3) cannot manage"),
    (HAND, "name: one", "name: leader", 1, "the address crew.leader already names"),
    (HAND, "is_leader: false", "is_leader: true", 1, "group crew has 2 leaders"),
    (HAND, "group: crew\nname: one\nis_leader: false", "is_leader: true", 1, "leads no group"),
    (MAIL, "hand, relation: own", "hand", 9, "a manager writes to its own workers only"),
]


@pytest.mark.parametrize(
    ("file", "old", "new", "line", "said"), MISTAKES, ids=[f"{m[0]}: {m[2]}" for m in MISTAKES]
)
def test_names_the_place_of(tmp_path, file, old, new, line, said):
    found = problems(tmp_path, edited(file, (old, new)))
    if said is None:
        assert found == []
        return
    place = "groups/crew.yaml" if "leaders" in said else file
    said_there = [text for name, at, text in found if (name, at) == (place, line)]
    assert any(said in text for text in said_there), found


def test_names_all_problems_and_not_just_the_first(tmp_path):
    found = problems(
        tmp_path,
        edited("roles.yaml", ("level: 2", "level: 20"), ("read_code", "read_cod"))
        | edited("mail-protocol.yaml", ("[report, escalation]", "[reprt]"))
        | {"agents/hand_two.yaml": "role: nothing\nreports_to: nobody\n"},
    )
    assert [(file, line) for file, line, _ in found] == [
        ("agents/hand_two.yaml", 1),
        ("agents/hand_two.yaml", 2),
        ("mail-protocol.yaml", 10),
        ("roles.yaml", 9),
        ("roles.yaml", 12),
    ]


def test_says_each_problem_as_file_line_what_and_how(tmp_path):
    write_pack(tmp_path, edited("roles.yaml", ("read_code", "read_cod")))
    [problem] = review_pack(tmp_path).problems
    assert str(problem) == (
        f"{tmp_path}/roles.yaml:12: there is no tool read_cod; did you mean read_code?"
    )


class TestTheToolsThatRolesList:
    def test_an_office_brings_its_own(self, tmp_path, monkeypatch):
        office = catalogue.CatalogueEntry(catalogue.Source.OFFICE, frozenset())
        monkeypatch.setitem(catalogue._entries, "judge_case", office)
        found = problems(tmp_path, edited("roles.yaml", ("read_code", "judge_case")))
        assert found == [("roles.yaml", 12, "judge_case comes by itself (office); take it out")]


class TestWithoutToolsDeclared:
    def test_names_of_tools_are_taken_on_trust(self, tmp_path, monkeypatch):
        monkeypatch.setattr(catalogue, "_entries", {})
        changes = edited("roles.yaml", ("read_code", "some_tool"))
        assert problems(tmp_path, changes) == []


class TestThePolicyOfAPack:
    def test_is_made_without_a_database(self, tmp_path):
        policy = policy_of(sound_pack(write_pack(tmp_path)))
        hand = policy.resolve("crew.one")
        assert hand is not None
        assert (hand.handle, hand.managers) == ("hand_one", ("lead", "other_lead"))
        assert policy.resolve("chief") is policy.agents["boss"]
        assert policy.contacts[("boss", "board")].types == {"info"}
        assert policy.contacts[("boss", "lead")].types is None

    def test_keeps_an_empty_list_of_types_apart_from_none(self, tmp_path):
        write_pack(tmp_path, edited("mail-protocol.yaml", ("to: lead}", "to: lead, types: []}")))
        policy = policy_of(sound_pack(tmp_path))
        assert policy.contacts[("boss", "lead")].types == frozenset()

    def test_is_refused_with_every_problem(self, tmp_path):
        write_pack(tmp_path, {"agents/hand_two.yaml": "role: x\nreports_to: y\n"})
        with pytest.raises(BadPack) as refused:
            sound_pack(tmp_path)
        assert len(refused.value.problems) == 2
        assert str(refused.value).count("\n") == 1


class TestToolRestrictions:
    def test_may_be_given_under_their_former_key(self, tmp_path):
        new = sound_pack(write_pack(tmp_path / "new"))
        former = edited("organisation.yaml", ("tool_restrictions:", "tightenings:"))
        assert sound_pack(write_pack(tmp_path / "old", former)) == new
        assert new.tool_restrictions

    def test_are_given_under_one_key(self, tmp_path):
        text = ("tool_restrictions:", "tightenings: []\ntool_restrictions:")
        [(file, _, said)] = problems(tmp_path, edited("organisation.yaml", text))
        assert file == "organisation.yaml"
        assert "tool_restrictions are given twice; keep one key" in said


COMPARED = []


class Counted(str):
    """A text that says when it is compared."""

    __slots__ = ()

    def __eq__(self, other):
        COMPARED.append(other)
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_a_long_list_is_looked_through_once():
    """A file of the largest size has 300,000 items: compared with each other they take hours."""
    items = [Counted(n) for n in range(2000)]
    assert values._require_distinct(items, lambda found: found) == tuple(items)
    assert len(COMPARED) < 10 * len(items)
