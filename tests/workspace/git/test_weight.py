"""What agents can make the repositories weigh, and how they lose weight again."""

import os
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.contracts import world
from tests.workspace.git.world import BRANCH, SCOPE, needs_walls, run_git
from workspace.git.collecting import KEPT, collect_garbage
from workspace.git.models import Draft
from workspace.git.repositories import drafts_of

pytestmark = [needs_walls, pytest.mark.django_db]
FILE = f"{SCOPE}data.txt"


def objects(hands):
    """How many objects the repository of drafts holds."""
    said = run_git("--git-dir", str(hands.drafts), "count-objects", "-v").splitlines()
    numbers = dict(line.split(": ") for line in said)
    return int(numbers["count"]) + int(numbers["in-pack"])


def has(hands, commit):
    return drafts_of(hands.company.organisation).succeeds("cat-file", "-e", commit)


def grow_old(hands):
    """Everything in the repository of drafts is older than what is kept."""
    then = (timezone.now() - 2 * KEPT).timestamp()
    for path in [hands.drafts, *hands.drafts.rglob("*")]:
        os.utime(path, (then, then))


class TestACommit:
    def test_counts_as_bytes_of_its_agent(self, hands, settings):
        settings.NEXUS_BYTES_PER_MINUTE = 50_000
        hands.hire()
        assert hands.branch().status == 200
        before = objects(hands)
        hands.write(FILE).write_bytes(os.urandom(60_000))
        answer = hands.commit(FILE)
        assert answer.code == "QUOTA_EXCEEDED", answer
        assert objects(hands) == before
        hands.write(FILE, "short\n")
        assert hands.commit(FILE).status == 200


class TestGarbage:
    @pytest.fixture
    def left(self, hands):
        """The commit of a contract that was cancelled; its agent works on another one now."""
        contract = hands.hire()
        hands.write(FILE)
        commit = hands.commit(FILE).result["commit"]
        world.close(hands.company, contract, "cancelled", version=2)
        hands.hire(assigned_branch="feat/next")
        return commit

    def test_is_what_a_contract_left_that_ended_long_ago(self, hands, left):
        assert hands.branch(name="feat/next").status == 200
        grow_old(hands)
        assert collect_garbage(now=timezone.now() + 2 * KEPT) == 1
        assert not has(hands, left)
        assert not Draft.objects.filter(branch=BRANCH).exists()
        hands.write(FILE, "y = 2\n")
        assert hands.commit(FILE).status == 200

    def test_is_not_what_the_work_tree_is_compared_with(self, hands, left):
        grow_old(hands)
        assert collect_garbage(now=timezone.now() + 2 * KEPT) == 0
        assert has(hands, left)

    def test_is_not_what_ended_a_short_time_ago(self, hands, left):
        assert hands.branch(name="feat/next").status == 200
        grow_old(hands)
        assert collect_garbage(now=timezone.now() + KEPT - timedelta(hours=1)) == 0
        assert has(hands, left)

    def test_is_not_a_merge_that_has_not_ended(self, hands, left):
        assert hands.branch(name="feat/next").status == 200
        Draft.objects.filter(checked_out=True).update(merged_tree="f" * 40)
        grow_old(hands)
        assert collect_garbage(now=timezone.now() + 2 * KEPT) == 1
        assert has(hands, left)

    def test_leaves_agents_able_to_read(self, hands, left):
        assert hands.branch(name="feat/next").status == 200
        hands.write(FILE, "z = 3\n")
        assert hands.commit(FILE).status == 200
        collect_garbage(now=timezone.now() + 2 * KEPT)
        hands.write(FILE, "z = 4\n")
        assert hands.commit(FILE).status == 200
        assert hands.push(branch="feat/next").status == 200
