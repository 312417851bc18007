"""A week of the dev team's tasks: a feature with its dependencies, routine work, and mistakes."""

from dataclasses import replace
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from core.actors import denial
from core.decision import Denied
from core.permissions import PeopleGroup
from ledger.services import record
from tasks import discussion, services
from tasks.rules.values import TaskUpdate
from tasks.vocabulary import Status
from tests.company import Company

FEATURE = (
    ("wishes", "Write down what customers want of the new search", "product-manager",
     "requirement_analysis", ()),
    ("index", "Compare three search indexes on our own data", "architect", "tech_research", ()),
    ("design", "Design the search service: index, API, limits", "architect",
     "architecture_design", ("wishes", "index")),
    ("look", "Draw the result page, also for narrow screens", "frontend-leader", "ui_design",
     ("wishes",)),
    ("api", "Specify the search API", "architect", "api_design", ("design",)),
    ("indexer", "Build the incremental indexer", "backend-leader", "backend_implementation",
     ("design",)),
    ("server", "Serve searches under 800 ms at the 95th percentile", "backend-leader",
     "backend_implementation", ("api", "indexer")),
    ("page", "Build the result page: 搜索结果 in every language", "frontend-leader",
     "frontend_implementation", ("api", "look")),
    ("app", "Show results in the app", "client-leader", "client_implementation", ("api",)),
    ("load", "Run the nightly load test against the new service", "test-leader", "testing",
     ("server",)),
    ("ship", "Switch customers over, ten percent a day", "devops-leader", "deployment",
     ("load", "page", "app")),
    ("tell", "Tell customers what is new", "product-manager", "documentation", ("ship",)),
)  # fmt: skip
DONE = ("wishes", "index", "design", "look", "api")
BEGUN = ("indexer", "page")
ROUTINE = (
    ("Green build at last: mend the flaky login test", "test-leader", "testing"),
    ("Update the base image", "devops-leader", "optimization"),
    ("Review the cache change", "backend-leader", "code_review"),
    ("Crash on empty basket", "backend-leader", "bug_fix"),
    ("Button overlaps the footer", "frontend-leader", "bug_fix"),
)


def work(company: Company) -> dict[str, str]:
    """Play the week; the ids of the feature's tasks by name."""
    now = timezone.now()
    ids = _feature(company, now - timedelta(days=6, hours=3))
    for day in range(7):
        _routine(company, day, now - timedelta(days=6 - day))
    ids["staging"] = _deployment(company, now - timedelta(hours=5))
    _mistakes(company, ids, now)
    _discuss(company, ids, now)
    return ids


def _caller(company, handle):
    return replace(company.caller(handle), tool="task_update")


def _update(company, handle, task_id, now, **changes):
    caller = _caller(company, handle)
    try:
        services.update_task(caller=caller, task_id=task_id, update=TaskUpdate(**changes), now=now)
    except Denied as refusal:
        with transaction.atomic():
            record("tool.denied", by=caller, at=now, **denial(refusal.deny))


def _feature(company, begin):
    ids = {}
    for place, (name, subject, role, kind, before) in enumerate(FEATURE):
        ids[name] = services.create_task(
            caller=_caller(company, "team-lead"),
            subject=subject,
            description=f"{subject}.\n\nDone when the team lead has seen it work.",
            required_role=role,
            task_type=kind,
            blocked_by=[ids[one] for one in before],
            metadata={"feature": "search", "place": place},
            now=begin + timedelta(minutes=place),
        )["id"]
    roles = {name: role for name, _, role, _, _ in FEATURE}
    for place, name in enumerate((*DONE, *BEGUN)):
        at = begin + timedelta(hours=2 + 14 * place)
        owner = roles[name]
        _update(company, owner, ids[name], at, owner=owner)
        _update(company, owner, ids[name], at + timedelta(minutes=20), status=Status.IN_PROGRESS)
        if name in DONE:
            late = at + timedelta(hours=4, minutes=25 * place)
            _update(company, owner, ids[name], late, status=Status.COMPLETED)
    return ids


def _routine(company, day, at):
    for place, (subject, role, kind) in enumerate((*ROUTINE, *ROUTINE)[day : day + 2 + day % 4]):
        begin = at - timedelta(minutes=90 + 7 * place)
        made = services.create_task(
            caller=_caller(company, "team-lead"),
            subject=subject,
            required_role=role if place else None,
            task_type=kind,
            now=begin,
        )["id"]
        if day == 6 and place > 1:
            continue
        took = timedelta(minutes=9 + 5 * place + 3 * day)
        _update(company, role, made, begin + timedelta(minutes=4), owner=role)
        _update(company, role, made, begin + timedelta(minutes=6), status=Status.IN_PROGRESS)
        _update(company, role, made, begin + took, status=Status.COMPLETED)


def _deployment(company, at):
    """Done, and waiting for the approval that the pack asks for."""
    lead, devops = _caller(company, "team-lead"), "devops-leader"
    made = services.create_task(
        caller=lead,
        subject="Move staging to the new cluster",
        description="Traffic of the last night replayed without an error.",
        required_role=devops,
        task_type="deployment",
        now=at,
    )["id"]
    for minutes, changes in ((8, {"owner": devops}), (12, {"status": Status.IN_PROGRESS})):
        _update(company, devops, made, at + timedelta(minutes=minutes), **changes)
    _update(company, devops, made, at + timedelta(hours=4), status=Status.COMPLETED)
    return made


def _mistakes(company, ids, now):
    for days in (5, 2, 2):
        at = now - timedelta(days=days, hours=1)
        _update(company, "architect", ids["design"], at, description="x", expected_version=1)
    for days in (4, 1):
        at = now - timedelta(days=days, hours=1)
        _update(company, "architect", ids["wishes"], at, status=Status.PENDING)
    made = services.create_task(
        caller=_caller(company, "team-lead"),
        subject="Clear the queue of old reports",
        required_role="test-leader",
        now=now - timedelta(days=3, hours=2),
    )["id"]
    _update(
        company, "team-lead", made, now - timedelta(days=3, hours=1), owner="architect", force=True
    )


def _discuss(company, ids, now):
    for handle, minutes, body in (
        ("backend-leader", 95, "The merge step holds the lock for 90 ms. Is that all right?"),
        (
            "architect",
            80,
            "Below 100 ms it is; above it users feel it. Keep the test.",
        ),
        ("backend-leader", 20, "74 ms now, over 10,000 documents."),
    ):
        discussion.comment_task(
            caller=_caller(company, handle),
            task_id=ids["indexer"],
            body=body,
            now=now - timedelta(minutes=minutes),
        )
    discussion.comment_task(
        caller=company.person(PeopleGroup.OBSERVER, username="olga.observer"),
        task_id=ids["indexer"],
        body="The legal team would like to see the list of indexed fields.",
        now=now - timedelta(minutes=10),
    )
