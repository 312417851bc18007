"""Who reads and adds to which memory, and what an artifact may be called: pure."""

from dataclasses import replace

import pytest

from documents.memory import rules
from tests.decisions import code_of
from tests.oracle.reading import compiled_nexus

NEXUS = compiled_nexus()
WORKER = NEXUS.agents["backend_worker"]
MEMBER = replace(WORKER, group="builders")
LEADER = replace(MEMBER, is_leader=True)
CEO = NEXUS.agents["ceo"]


@pytest.mark.parametrize(
    ("scope", "agent", "reads", "adds"),
    [
        ("agent", WORKER, "OK", "OK"),
        ("group", WORKER, "SCOPE_DENIED", "SCOPE_DENIED"),
        ("organisation", WORKER, "OK", "LEVEL_DENIED"),
        ("agent", MEMBER, "OK", "OK"),
        ("group", MEMBER, "OK", "OK"),
        ("organisation", MEMBER, "OK", "LEVEL_DENIED"),
        ("organisation", LEADER, "OK", "OK"),
        ("organisation", CEO, "OK", "OK"),
    ],
)
def test_a_memory_is_read_and_added_to_by_its_own(scope, agent, reads, adds):
    assert code_of(rules.can_read(scope, agent)) == reads
    assert code_of(rules.can_append(scope, agent, NEXUS)) == adds


def test_a_refusal_offers_the_group_to_its_members_only():
    offers = [
        "or group" in rules.can_append("organisation", agent, NEXUS).next_action
        for agent in (WORKER, MEMBER)
    ]
    assert offers == [False, True]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("report.md", "OK"), ("r", "OK"), ("季度.md", "OK"), ("a b-c_d.txt", "OK"),
        ("a" * 120, "OK"), ("a" * 121, "SCOPE_DENIED"), ("", "SCOPE_DENIED"),
        (".env", "SCOPE_DENIED"), ("a/b", "SCOPE_DENIED"), ("..", "SCOPE_DENIED"),
        ("end ", "SCOPE_DENIED"), ("a\\nb", "SCOPE_DENIED"),
    ],
)  # fmt: skip
def test_an_artifact_has_a_plain_file_name(name, code):
    assert code_of(rules.can_save(name, WORKER, NEXUS)) == code


def test_an_artifact_has_no_name_that_its_role_is_denied():
    role = NEXUS.roles[WORKER.role]
    files = replace(role.files, deny=frozenset({"agents/backend_worker/artifacts/secret.md"}))
    policy = replace(NEXUS, roles={**NEXUS.roles, role.name: replace(role, files=files)})
    assert code_of(rules.can_save("secret.md", WORKER, policy)) == "SCOPE_DENIED"
    assert code_of(rules.can_save("open.md", WORKER, policy)) == "OK"
