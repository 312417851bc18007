"""The setting `repository` in the admin means what it means to `org set` (Spec: hands 22)."""

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from core.database import in_transaction
from core.permissions import PeopleGroup
from orgchart.models import Organisation, PendingChange
from orgchart.second_person.vocabulary import PendingState
from tests.admin.forms import confirm, filled, preview
from tests.admin.places import act_page, change_page, page_of
from tests.rows import newest_event
from tests.workspace.git.world import a_root, ensure_repositories, run_git
from workspace.git import importing, running
from workspace.git.models import Branch, BranchMove, MoveKind, Repository
from workspace.git.repositories import bare_of

REASON = "Our code is there."
PUSHED = "agents have begun work in the repository of nexus"


@pytest.fixture(autouse=True)
def repository(company, settings):
    """The repository that the organisation has; nobody pushed to it."""
    with a_root() as root:
        settings.WORKSPACE_ROOT = root
        ensure_repositories(now=timezone.now())
        yield Repository.objects.get(organisation=company.organisation)


@pytest.fixture
def other(tmp_path):
    """A repository of somebody else."""
    bare = tmp_path / "other.git"
    run_git("init", "--quiet", "--bare", "--initial-branch=trunk", str(bare))
    work = tmp_path / "work"
    run_git("clone", "--quiet", str(bare), str(work))
    me = ("-c", "user.name=x", "-c", "user.email=x@x")
    run_git(*me, "commit", "--quiet", "--allow-empty", "-m", "first", cwd=work)
    run_git("push", "--quiet", "origin", "HEAD:trunk", cwd=work)
    return bare


@pytest.fixture
def second(sign_in, groups, board):
    """A client of a second member of the Board."""
    client = sign_in(None)
    user = get_user_model().objects.get(username="nobody")
    user.groups.set([groups[PeopleGroup.BOARD]])
    return client


@pytest.fixture
def push(company, repository):
    """A function that leaves what an agent's push leaves."""
    work = {"title": "Work", "body": "Do it.", "assigned_branch": "feature/x"}
    made = company.call("it_manager", "create_contract", to="backend_worker", **work).result

    def pushed():
        BranchMove.objects.create(
            organisation=company.organisation, repository=repository, branch="feature/x",
            kind=MoveKind.PUSH,
            new=Branch.objects.get().commit, contract_id=made["contract_id"],
            by="agent:backend_worker", at=timezone.now(),
        )  # fmt: skip

    return pushed


def previewed(client, company, source, **more):
    page = change_page(company.organisation)
    return preview(
        client, page, "organisation_form", setting_repository=str(source), reason=REASON, **more
    )


def save(client, company, seen):
    return confirm(client, change_page(company.organisation), seen)


def setting(company):
    stored = Organisation.objects.get(id=company.organisation.id).settings
    return stored.get("repository", "")


class TestThePreview:
    def test_imports_nothing(self, board, company, other, repository):
        assert previewed(board, company, other).status_code == 200
        assert Repository.objects.get().id == repository.id

    def test_refuses_what_agents_pushed_to(self, board, company, other, push):
        push()
        seen = previewed(board, company, other)
        assert seen.status_code == 422
        assert PUSHED in seen.content.decode()

    def test_of_another_setting_asks_nothing_of_the_repository(self, board, company, push):
        push()
        seen = previewed(board, company, "", setting_max_rounds="5")
        assert seen.status_code == 200


class TestTheConfirmedForm:
    def test_imports_outside_of_the_transaction(self, board, company, other, monkeypatch):
        seen, open_meanwhile = previewed(board, company, other), []

        def watched(*words, **options):
            open_meanwhile.append(in_transaction())
            return running.run_git(*words, **options)

        monkeypatch.setattr(importing, "run_git", watched)
        assert save(board, company, seen).status_code == 302
        assert open_meanwhile == [False]
        found = Repository.objects.get()
        assert (found.main, found.source, setting(company)) == ("trunk", str(other), str(other))
        assert bare_of(company.organisation).commit_at("refs/heads/trunk")

    def test_is_refused_where_its_person_leaves_the_board_meanwhile(
        self, board, company, other, repository, monkeypatch
    ):
        seen = previewed(board, company, other)

        def left(*words, **options):
            get_user_model().objects.get(username="board").groups.clear()
            return running.run_git(*words, **options)

        monkeypatch.setattr(importing, "run_git", left)
        answer = save(board, company, seen)
        assert answer.status_code == 422
        assert "ended while this was carried out" in answer.content.decode()
        assert (Repository.objects.get().id, setting(company)) == (repository.id, "")
        assert not importing.has_prepared(bare_of(company.organisation).folder)

    def test_is_refused_where_agents_pushed_meanwhile(
        self, board, company, other, repository, push
    ):
        seen = previewed(board, company, other)
        push()
        answer = save(board, company, seen)
        assert answer.status_code == 422
        assert PUSHED in answer.content.decode()
        assert (Repository.objects.get().id, setting(company)) == (repository.id, "")

    def test_changes_nothing_where_the_import_fails(self, board, company, tmp_path, repository):
        answer = save(board, company, previewed(board, company, tmp_path / "none.git"))
        assert answer.status_code == 422
        assert "cannot be imported" in answer.content.decode()
        assert (Repository.objects.get().id, setting(company)) == (repository.id, "")

    def test_of_a_person_without_the_right_imports_nothing(
        self, hr, board, company, other, monkeypatch
    ):
        seen = previewed(board, company, other)
        monkeypatch.setattr(importing, "run_git", None)
        assert save(hr, company, seen).status_code == 422
        assert setting(company) == ""


class TestAProposal:
    @pytest.fixture
    def proposed(self, board, second, company, other):
        """A change that gives a right, so that it waits, and names a repository."""
        seen = previewed(board, company, other, setting_task_visibility="all")
        assert "second-person" in seen.content.decode()
        save(board, company, seen)
        return PendingChange.objects.get()

    def decide(self, client, row):
        return client.post(
            page_of(row, "confirm"), {"reason": "Looked at it.", "version": row.version}
        )

    def test_imports_when_it_is_confirmed(self, second, company, other, repository, proposed):
        assert Repository.objects.get().id == repository.id
        self.decide(second, proposed)
        assert (Repository.objects.get().source, setting(company)) == (str(other), str(other))

    def test_becomes_stale_where_agents_pushed_meanwhile(
        self, second, company, repository, proposed, push
    ):
        push()
        self.decide(second, proposed)
        row = PendingChange.objects.get()
        assert row.state == PendingState.STALE
        assert PUSHED in row.decision_reason
        assert (Repository.objects.get().id, setting(company)) == (repository.id, "")

    def test_is_not_followed_for_its_proposer(self, board, company, proposed, monkeypatch):
        monkeypatch.setattr(importing, "run_git", None)
        self.decide(board, proposed)
        state = PendingChange.objects.get().state
        assert (state, setting(company)) == (PendingState.PROPOSED, "")


class TestAPushBack:
    def test_is_of_the_commit_that_was_shown(self, board, company, other, repository):
        """An agent merges while a person reads: they published what they had not seen."""
        save(board, company, previewed(board, company, other))
        row = Repository.objects.get()
        trunk = Branch.objects.filter(repository=row, name="trunk")
        page, commit = act_page(row, "push-back"), trunk.get().commit
        assert commit in board.get(page).content.decode()
        read = filled(board, page, "act-form", reason=REASON)
        me = ("-c", "user.name=x", "-c", "user.email=x@x")
        merge = ("commit-tree", "-m", "Merge", "-p", commit, f"{commit}^{{tree}}")
        folder = str(bare_of(company.organisation).folder)
        trunk.update(commit=run_git("--git-dir", folder, *me, *merge))
        assert "changed after you read it" in board.post(page, read).content.decode()
        assert (newest_event().action, newest_event().code) == ("human.denied", "VERSION_MISMATCH")
        trunk.update(commit=commit)
        assert board.post(page, read).status_code == 302
