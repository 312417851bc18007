"""What is no pack at all: bombs, strange files, wrong names, circles."""

import os

import pytest

from orgchart.packs import review_pack
from tests.orgchart.world import ACME, edited, problems, write_pack


class TestWhatNoYamlMayHold:
    @pytest.mark.parametrize(
        ("text", "line", "said"),
        [
            ("a: &x [1]\nb: *x\n", 1, "anchors and aliases"),
            ("a: !!python/object/apply:os.system ['true']\n", 1, "the tag"),
            ("a: 1\nb: !!str 2\n", 2, "the tag"),
            ("a: 1\n---\nb: 2\n", 2, "a second document"),
            ("a: " + "[" * 40 + "]" * 40, 1, "nested deeper"),
            ("a: " + "[" * 100_000, 1, "nested deeper"),
            ("a: [1\nb: 2\n", 1, "this is no YAML"),
            ("\ta: 1\n", 1, "this is no YAML"),
            ("- a\n", 1, "`key: value` lines"),
            ("", 1, "`key: value` lines"),
            ("# nothing\n", 1, "`key: value` lines"),
            ("a: \x07\n", 1, "character"),
            ("a: [" + "1," * 350_000 + "1]", 1, "more than 300000 values"),
            ("a: " + "x" * 33_600_000, 1, "is larger than 33554432 bytes"),
        ],
        ids=lambda value: str(value)[:40],
    )
    def test_is_refused_with_its_line(self, tmp_path, text, line, said):
        found = problems(tmp_path, {"roles.yaml": text})
        assert [(file, at) for file, at, _ in found] == [("roles.yaml", line)]
        assert said in found[0][2]

    def test_of_megabytes_is_read(self, tmp_path):
        """Of 3,700 kinds of workers the exported roles were larger than a file that was read."""
        kind = "title: X\n    level: 3\n    kind: worker\n    summary: " + "x" * 199_000
        kinds = "".join(f"  kind_{number}:\n    {kind}\n" for number in range(25))
        assert problems(tmp_path, edited("roles.yaml", ("  lead:\n", f"{kinds}  lead:\n"))) == []

    def test_a_billion_laughs_is_refused_before_it_is_built(self, tmp_path):
        bomb = "a: &a [lol, lol]\n" + "".join(
            f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
            for old, new in zip("abcdefgh", "bcdefghi", strict=True)
        )
        assert problems(tmp_path, {"roles.yaml": bomb})[0][:2] == ("roles.yaml", 1)

    def test_bytes_that_are_no_utf_8(self, tmp_path):
        write_pack(tmp_path)
        (tmp_path / "roles.yaml").write_bytes(b"roles:\n  a: \xff\xfe\n")
        [problem] = review_pack(tmp_path).problems
        assert (problem.line, problem.message) == (2, "is not UTF-8")

    def test_a_merge_key_is_just_an_unknown_key(self, tmp_path):
        found = problems(tmp_path, edited("roles.yaml", ("level: 2", "<<: {level: 2}")))
        assert ("roles.yaml", 9, "a key must be text; put it in quotes or correct it") in found


class TestWhatIsNoPack:
    def test_a_folder_that_does_not_exist(self, tmp_path):
        [problem] = review_pack(tmp_path / "nowhere").problems
        assert problem.message == "there is no such folder"

    def test_a_file_in_place_of_the_folder(self, tmp_path):
        path = tmp_path / "pack"
        path.write_text("x")
        assert review_pack(path).problems[0].message == "there is no such folder"

    @pytest.mark.parametrize("name", ["organisation.yaml", "roles.yaml", "mail-protocol.yaml"])
    def test_a_pack_without_one_of_its_files(self, tmp_path, name):
        assert problems(tmp_path, {name: None}) == [
            (name, 1, "this file is missing; add it as a plain file")
        ]

    def test_a_pipe_in_place_of_a_file_is_never_waited_for(self, tmp_path):
        write_pack(tmp_path, {"roles.yaml": None})
        os.mkfifo(tmp_path / "roles.yaml")
        assert review_pack(tmp_path).problems[0].message == "this file is no plain file"

    @pytest.mark.parametrize(
        "stray",
        [
            "agents/third.yml",
            "role.yaml",
            "agnts/x.yaml",
            "agents.yml",
            "agents/third.YAML",
            "agents/team/third.yaml",
            "ROLES.YML",
        ],
    )
    def test_a_file_that_nobody_would_read(self, tmp_path, stray):
        [(file, line, text)] = problems(tmp_path, {stray: "role: hand\n"})
        assert (file, line) == (stray, 1)
        assert "is no part of a pack" in text

    @pytest.mark.parametrize("stem", ["Hand", "board", "hаnd", "hand one", "9lives", "-x"])
    def test_an_agent_whose_file_is_no_handle(self, tmp_path, stem):
        found = problems(tmp_path, {f"agents/{stem}.yaml": "role: hand\nreports_to: lead\n"})
        assert [(file, line) for file, line, _ in found] == [(f"agents/{stem}.yaml", 1)]

    @pytest.mark.parametrize("stem", ["system", "human", "agent"])
    def test_an_agent_that_would_pass_for_somebody_else(self, tmp_path, stem):
        found = problems(tmp_path, {f"agents/{stem}.yaml": "role: hand\nreports_to: lead\n"})
        assert found[0][:2] == (f"agents/{stem}.yaml", 1)
        assert "means another actor" in found[0][2]

    def test_a_circle_is_named_at_each_that_is_in_it(self, tmp_path):
        found = problems(
            tmp_path,
            {
                "agents/lead.yaml": ACME["agents/lead.yaml"].replace("boss", "other_lead"),
                "agents/other_lead.yaml": "role: lead\nreports_to: lead\n",
            },
        )
        assert [(file, line) for file, line, _ in found] == [
            ("agents/lead.yaml", 2),
            ("agents/other_lead.yaml", 2),
        ]
        assert "lead -> other_lead -> lead" in found[0][2]

    def test_an_alias_that_is_an_address_is_refused(self, tmp_path):
        found = problems(tmp_path, edited("organisation.yaml", ("chief: boss", "crew.one: boss")))
        assert found[0][0] == "agents/boss.yaml"
        assert "its alias crew.one is a name of hand_one already" in found[0][2]
