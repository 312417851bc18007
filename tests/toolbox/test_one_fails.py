"""What fails for one organisation, for whatever reason, keeps a job from no other (clocks 14)."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from documents.files import tree_of
from governance.staff import org_files
from mailroom.escalations import timeouts
from mailroom.models import OutgoingNotice
from mailroom.outgoing import outbox
from tasks import schedule as leases
from tasks.models import Task
from tests.company import load_company
from tests.mailroom.world import NOW, call, configure, notify_board
from toolbox import scheduler
from toolbox.models import JobRun
from workspace.builds import deployments
from workspace.builds.models import Deployment
from workspace.git import garbage, pushing_back
from workspace.git.models import MoveKind, Repository

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(days=1)
HOOK = {"board_webhook": "http://127.0.0.1:9/", "allow_internal_addresses": True}


class Broken(Exception):
    """What nobody foresaw."""


@pytest.fixture
def both():
    """The organisation for which a part of each job is broken, and the one after it."""
    return load_company("nexus"), load_company("soloqueue")


@pytest.fixture
def run(both, monkeypatch):
    """Run a job with a part that fails for the first organisation, which the job's record names."""

    def does(job, module, part):
        original = getattr(module, part)

        def failing(first, *rest, **named):
            whose = getattr(first, "organisation_id", getattr(first, "id", first))
            if whose == both[0].organisation.id:
                raise Broken(part)
            return original(first, *rest, **named)

        monkeypatch.setattr(module, part, failing)
        scheduler.run_job(job, now=LATER)
        problem = JobRun.objects.get(name=job).last_problem
        assert problem.startswith("1 rows failed")
        assert problem.endswith(f"Broken: {part}")

    return does


def test_charts(both, run):
    run("charts", org_files, "current_policy")
    assert tree_of("soloqueue").read(org_files.ORG)


def test_leases_of_claims_without_one(both, run):
    for company, who in zip(both, ("it_manager", "coding_leader"), strict=True):
        configure(company, task_lease=7 * 24 * 3600)
        Task.objects.create(
            organisation=company.organisation, number=1, subject="x", status="in_progress",
            owner=company.agent(who), created_at=NOW, updated_at=NOW,
            claimed_at=NOW,
        )  # fmt: skip
    run("leases", leases, "current_policy")
    assert [task.organisation_id for task in Task.objects.exclude(lease_due_at=None)] == [
        both[1].organisation.id
    ]


def test_escalations_that_the_board_got_no_notice_of(both, run):
    for company, who in zip(both, ("it_manager", "coding_developer"), strict=True):
        assert call(company, who, "escalate", subject="Help", body="Money.").status == 200
    scheduler.run_job("escalations", now=LATER - timedelta(hours=1))
    for company in both:
        configure(company, **HOOK)
    run("escalations", timeouts, "current_policy")
    assert [row.organisation_id for row in OutgoingNotice.objects.all()] == [
        both[1].organisation.id
    ]


def test_notices(both, run):
    for company in both:
        configure(company, **HOOK)
        notify_board(company, subject="Help")
    run("notices", outbox, "_change")
    tried = OutgoingNotice.objects.get(organisation_id=both[1].organisation.id)
    assert tried.last_problem


def test_deployments(both, run):
    for company, who in zip(both, ("devops_worker", "coding_leader"), strict=True):
        Deployment.objects.create(
            id=f"DEP-{who}", organisation=company.organisation, environment="staging",
            service="api", artifact="x", started_at=NOW, due_at=NOW,
            deployed_by=company.agent(who),
        )  # fmt: skip
    run("deployments", deployments, "find_outcome")
    assert [row.organisation_id for row in Deployment.objects.exclude(state="started")] == [
        both[1].organisation.id
    ]


@pytest.mark.parametrize(
    ("job", "module", "part"),
    [
        ("repositories", pushing_back, "_push_back_in_time"),
        ("git garbage", garbage, "_collect"),
    ],
)
def test_repositories(both, run, monkeypatch, job, module, part):
    done = []
    monkeypatch.setattr(module, part, lambda row, now: done.append(row) or 1)
    for company in both:
        company.organisation.settings |= {"repository_push": "after_merge"}
        company.organisation.save()
        row = Repository.objects.create(
            organisation=company.organisation, main="main", source="/x", created_at=NOW
        )
        row.branches.create(name="main", commit="a" * 40)
        row.moves.create(organisation_id=row.organisation_id, branch="main", kind=MoveKind.IMPORT,
                         new="a" * 40, by="x", at=NOW)  # fmt: skip
    monkeypatch.setattr(pushing_back, "MoveKind", SimpleNamespace(MERGE=MoveKind.IMPORT))
    run(job, module, part)
    assert len(done) == 1
