"""What is exported and loaded again is the same organisation, whatever it holds."""

import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from core.limits import MAX_REASON
from orgchart.compiling import compile_policy
from orgchart.models import Organisation
from orgchart.packs import NotAPack, export_pack, review_pack
from orgchart.packs.checking import sound_pack
from orgchart.packs.pack import Pack, PackToolRestriction, Staff, policy_of
from orgchart.packs.writing import write_pack as write_rows
from orgchart.policy.compiled import (
    ContactRule,
    FileScopes,
    Group,
    MailTypeRule,
    Role,
    ToolRestriction,
)
from orgchart.policy.invariants import violations
from orgchart.policy.vocabulary import (
    BOARD,
    ESCALATION,
    KINDS,
    ContractScope,
    Kind,
    Relation,
    ToolMode,
)
from orgchart.staffing import deactivate_agent
from tests.orgchart.world import NOW, PACKS, SHIPPED, load, person, plain

pytestmark = pytest.mark.django_db


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def renamed(folder, slug):
    """The pack in a folder as that of another organisation."""
    path = folder / "organisation.yaml"
    first, rest = path.read_text().split("\n", 1)
    assert first.startswith("organisation: ")
    path.write_text(f"organisation: {slug}\n{rest}")
    return folder


@pytest.mark.parametrize("name", SHIPPED)
class TestAShippedPack:
    def test_comes_out_as_it_went_in(self, name, tmp_path):
        load(PACKS / name)
        organisation = Organisation.objects.get(slug=name)
        export_pack(organisation, tmp_path)
        assert review_pack(tmp_path).problems == []
        assert plain(policy_of(sound_pack(tmp_path))) == plain(policy_of(sound_pack(PACKS / name)))
        assert not load(tmp_path).changed

    def test_makes_the_same_organisation_under_another_name(self, name, tmp_path):
        first = load(PACKS / name).after
        export_pack(Organisation.objects.get(slug=name), tmp_path)
        second = load(renamed(tmp_path, "copy")).after
        assert plain(second) == plain(first)

    def test_is_the_same_bytes_each_time(self, name, tmp_path):
        load(PACKS / name)
        organisation = Organisation.objects.get(slug=name)
        export_pack(organisation, tmp_path / "one")
        load(tmp_path / "one")
        export_pack(organisation, tmp_path / "two")
        assert contents(tmp_path / "one") == contents(tmp_path / "two")


class TestAnExport:
    def test_keeps_who_is_deactivated(self, acme, tmp_path):
        deactivate_agent(handle="hand_two", caller=person(acme), now=NOW, reason="left")
        export_pack(acme, tmp_path / "out")
        assert "active: false" in (tmp_path / "out/agents/hand_two.yaml").read_text()
        copy = load(renamed(tmp_path / "out", "copy")).after
        assert not copy.agents["hand_two"].active

    def test_keeps_tightenings(self, acme, tmp_path):
        export_pack(acme, tmp_path / "out")
        copy = load(renamed(tmp_path / "out", "copy")).after
        assert copy.tool_restrictions == {("role:lead", "web_search"): frozenset()}

    def test_can_be_loaded_with_the_longest_reason_of_an_agent(self, acme, tmp_path):
        acme.overrides.update(reason="r" * MAX_REASON)
        export_pack(acme, tmp_path / "out")
        assert not review_pack(tmp_path / "out").problems

    def test_can_be_loaded_with_skills_whose_names_begin_with_a_digit(self, acme, tmp_path):
        acme.agents.update(skills=["3d_prints", "read-aloud", "v1.2"])
        export_pack(acme, tmp_path / "out")
        assert not review_pack(tmp_path / "out").problems
        assert not violations(compile_policy(acme.id))

    def test_holds_no_key_and_nothing_secret(self, acme, tmp_path):
        files = export_pack(acme, tmp_path / "out")
        assert not [f for f in files if "nxs_" in f.read_text()]

    def test_replaces_an_older_one(self, acme, tmp_path):
        out = tmp_path / "out"
        export_pack(acme, out)
        (out / "agents/gone.yaml").write_text("role: hand\nreports_to: lead\n")
        (out / "notes.txt").write_text("mine")
        export_pack(acme, out)
        assert not (out / "agents/gone.yaml").exists()
        assert (out / "notes.txt").read_text() == "mine"
        assert review_pack(out).problems == []

    @pytest.mark.parametrize("is_new", [True, False])
    @pytest.mark.parametrize("left_out", [1, 2, 5])
    def test_is_no_pack_where_it_was_broken_off(
        self, acme, tmp_path, monkeypatch, is_new, left_out
    ):
        """Loading it would deactivate each agent whose file is missing."""
        whole = {path.name for path in export_pack(acme, tmp_path / "whole")}
        out = tmp_path / "out"
        if not is_new:
            export_pack(acme, out)
        steps = len(whole) - left_out
        write_bytes = Path.write_bytes

        def write(path, *words, **options):
            nonlocal steps
            steps -= 1
            if steps < 0:
                raise KeyboardInterrupt
            return write_bytes(path, *words, **options)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_bytes", write)
            with pytest.raises(KeyboardInterrupt):
                export_pack(acme, out)
        assert "did not come to its end" in str(review_pack(out).problems)
        export_pack(acme, out)
        assert review_pack(out).problems == []
        assert contents(out) == contents(tmp_path / "whole")

    @pytest.mark.parametrize("moved", [0, 1, 6])
    def test_is_no_pack_while_its_files_are_moved(self, acme, tmp_path, monkeypatch, moved):
        out, replace_file, steps = tmp_path / "out", Path.replace, moved

        def move(path, target):
            nonlocal steps
            steps -= 1
            if steps < 0:
                raise KeyboardInterrupt
            return replace_file(path, target)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", move)
            with pytest.raises(KeyboardInterrupt):
                export_pack(acme, out)
        assert review_pack(out).problems
        export_pack(acme, out)
        assert review_pack(out).problems == []

    def test_never_mixes_with_what_is_no_pack(self, acme, tmp_path):
        (tmp_path / "home").mkdir()
        (tmp_path / "home/thesis.tex").write_text("…")
        with pytest.raises(NotAPack):
            export_pack(acme, tmp_path / "home")
        assert contents(tmp_path / "home") == {"thesis.tex": "…".encode()}

    def test_never_replaces_the_pack_of_another(self, acme, tmp_path):
        shutil.copytree(PACKS / "soloqueue", tmp_path / "other")
        before = contents(tmp_path / "other")
        with pytest.raises(NotAPack):
            export_pack(acme, tmp_path / "other")
        assert contents(tmp_path / "other") == before


# Generated organisations: sound by construction, odd in every text.

texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=40)
long_texts = st.lists(texts, max_size=4).map("\n".join)
titles = texts.filter(str.strip)
names = st.from_regex(r"\A[a-z][a-z0-9_.-]{0,8}\Z")
TOOLS = ("send_mail", "read_file", "read_code", "web_search", "write_note")
PATHS = ("docs/", "src/a b/", "agents/{agent}/", "README.md", "ünï/")
DENIES = (".env", "*.pem", "secret/place/", "no", "true", "1.5", "null", "#hash", "a: b")


def some(values):
    return st.lists(st.sampled_from(values), unique=True, max_size=4).map(tuple)


permissions = st.fixed_dictionaries(
    {},
    optional={
        "claim_task_type": st.just(value=True)
        | st.lists(st.sampled_from(("testing", "bug_fix", "other")), unique=True),
        "update_own_tasks": st.booleans(),
        "comment_on_all_tasks": st.booleans(),
    },
)


@st.composite
def roles(draw, name, level, kind):
    return Role(
        name=name,
        title=draw(titles),
        level=level,
        kind=kind,
        tools=frozenset({"escalate", *draw(some(TOOLS))}),
        denied_tools=frozenset(draw(some(TOOLS))),
        summary=draw(long_texts),
        prohibitions=tuple(draw(st.lists(titles, max_size=3, unique=True))),
        files=FileScopes(
            draw(some(PATHS)),
            draw(some(PATHS)),
            draw(some(DENIES)),
            contract=draw(st.sampled_from(ContractScope)),
        ),
        task_lead=draw(st.booleans()),
        permissions=draw(permissions),
    )


@st.composite
def packs(draw):
    taken = draw(st.lists(names, min_size=14, max_size=14, unique=True))
    boss, lead, hand, chief, first, second, third, group, one, two, alias, *types = (
        f"{name}{number}" for number, name in enumerate(taken)
    )
    rank = [
        draw(roles(boss, 1, Kind.EXECUTIVE)),
        draw(roles(lead, 2, Kind.MANAGER)),
        draw(roles(hand, 3, Kind.WORKER)),
    ]
    grouped = draw(st.booleans())
    place = {"group": group} if grouped else {}
    flair = st.fixed_dictionaries(
        {
            "title": texts,
            "skills": st.lists(names, unique=True, max_size=3).map(tuple),
            "system_prompt": long_texts,
            "job_description": long_texts,
        }
    )
    active = draw(st.booleans())
    staff = (
        Staff(handle=chief, role=boss, **draw(flair)),
        Staff(
            handle=first,
            role=lead,
            reports_to=chief,
            is_leader=grouped,
            **place,
            **({"name": one} if grouped else {}),
            **draw(flair),
        ),
        Staff(handle=second, role=lead, reports_to=chief, **draw(flair)),
        Staff(
            handle=third,
            role=hand,
            reports_to=first,
            co_managers=draw(some((second,))),
            active=active,
            **place,
            **({"name": two} if grouped else {}),
            **draw(flair),
        ),
    )
    mail_types = tuple(
        MailTypeRule(
            name=name,
            senders=draw(st.none() | some((boss, lead, hand)).map(frozenset)),
            issued_by=draw(some(("create_contract", "write_verdict"))),
            to_superior=draw(st.booleans()),
            description=draw(texts),
        )
        for name in types
    )
    senders = draw(st.none() | st.just(frozenset({lead, hand})) | st.just(frozenset(KINDS)))
    mail_types += (MailTypeRule(ESCALATION, senders, to_superior=True),)
    pairs = [
        (boss, lead, Relation.ANY),
        (lead, lead, Relation.OWN),
        (lead, hand, Relation.OWN),
        (boss, BOARD, Relation.ANY),
    ]
    way_up = [
        ContactRule(
            sender,
            recipient,
            types=draw(st.none() | some(tuple(types)).map(lambda t: frozenset({*t, ESCALATION}))),
            relation=relation,
        )
        for sender, recipient, relation in (
            (lead, boss, draw(st.sampled_from(Relation))),
            (hand, lead, Relation.OWN),
        )
    ]
    contacts = tuple(way_up) + tuple(
        ContactRule(
            sender,
            recipient,
            types=draw(st.none() | some(tuple(types)).map(frozenset)),
            needs_contract=draw(st.booleans()),
            relation=relation,
        )
        for sender, recipient, relation in draw(
            st.lists(st.sampled_from(pairs), unique=True, max_size=4)
        )
    )
    scopes = ("organisation", f"role:{hand}", f"agent:{third}")
    return Pack(
        organisation="generated",
        name=draw(titles),
        description=draw(long_texts),
        settings=draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "max_rounds": st.integers(1, 100),
                    "board_email": st.emails().filter(lambda e: e.isprintable() and "=?" not in e),
                    "enabled_modes": st.just(["chat_safe", "coding"]),
                },
            )
        ),
        aliases=draw(st.dictionaries(st.just(alias), st.sampled_from([chief, third]))),
        tool_restrictions=tuple(
            PackToolRestriction(
                restriction=ToolRestriction(scope, draw(st.sampled_from(TOOLS)), frozenset(modes)),
                reason=draw(texts),
            )
            for scope, modes in draw(
                st.dictionaries(st.sampled_from(scopes), some(tuple(ToolMode)), max_size=3)
            ).items()
        ),
        roles=tuple(rank),
        groups=(Group(group, draw(titles), draw(long_texts), draw(st.booleans())),),
        staff=staff,
        mail_types=mail_types,
        contacts=contacts,
    )


class Back(Exception):
    """Ends an example and takes its rows with it."""


@given(packs())
@settings(
    max_examples=35,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # each step of shrinking is a database
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_organisation_survives_export_and_load(pack):
    with TemporaryDirectory() as place, suppress(Back), transaction.atomic():
        row = Organisation.objects.create(slug=pack.organisation, name="x")
        write_rows(row, pack, new=True, by="tests")
        first, second = Path(place) / "first", Path(place) / "second"
        export_pack(row, first)
        assert [str(p) for p in review_pack(first).problems] == []
        assert plain(policy_of(sound_pack(first))) == plain(policy_of(pack))
        assert not load(first).changed
        export_pack(row, second)
        assert contents(first) == contents(second)
        copy = load(renamed(second, "copy")).after
        assert plain(copy) == plain(compile_policy(row.id))
        assert replace(sound_pack(second), organisation=pack.organisation) == sound_pack(first)
        raise Back
