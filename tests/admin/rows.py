"""Rows of every state that a day of the company leaves out, inserted as services leave them."""

import uuid
from datetime import timedelta

from django.db.models import Model
from django.utils import timezone

from contracts.models import Contract, Verdict
from documents.models import Artifact, Document, Memory
from mailroom.models import OutgoingNotice
from tasks.models import Comment, Dependency, Feedback, Task
from toolbox.models import Frame, IdempotencyRecord, JobRun, ModeGrant
from toolbox.scheduler import JOBS
from workspace.models import (
    Branch,
    BranchMove,
    Deployment,
    ImageBuild,
    Repository,
    Run,
    Skill,
)

DIGEST = "0" * 64
COMMIT = "f" * 40


def fill(company) -> list[Model]:
    """Insert them; returns those whose pages differ by their state."""
    made = [*_tasks(company), *_frames(company), *_notices(company), *_documents(company)]
    made += [*_workspace(company), *_runs(company), *_skills(), *_toolbox(company)]
    return made


def _tasks(company):
    now = timezone.now()
    owner = company.agent("backend_worker")
    times = {"claimed_at": now, "started_at": now - timedelta(minutes=90)}
    given = {"organisation": company.organisation, "created_by": "agent:it_manager"}
    rows = [
        Task.objects.create(number=number, status=status, subject=f"第{number}项", **given, **more)
        for number, (status, more) in enumerate(
            [
                ("pending", {"task_type": "bug_fix", "required_role": "backend_worker"}),
                ("pending", {"open_blockers": 1, "metadata": {"链接": "无"}}),
                ("in_progress", {"owner": owner, "task_type": "code_review", **times}),
                ("completed", {"completed_at": now, "completed_by": owner, **times}),
                ("deleted", {}),
            ],
            start=9001,
        )
    ]
    Dependency.objects.create(organisation=company.organisation, blocker=rows[0], blocked=rows[1])
    Comment.objects.create(task=rows[0], author="human:甲", body="[HUMAN_NOTE] 先做这个")
    company.call("it_manager", "assign_task", task_id="9001", owner="backend_worker")
    feedback = Feedback.objects.create(
        organisation=company.organisation,
        source="邮箱",
        category="缺陷",
        body="搜索太慢",
        received_at=now,
        task=rows[0],
    )
    return [*rows, feedback]


def _frames(company):
    now = timezone.now()
    given = {
        "organisation": company.organisation,
        "kind": "delegation",
        "opener": company.agent("it_manager"),
        "assignee": company.agent("backend_worker"),
        "instruction": "读一读日志",
        "opened_at": now,
    }
    later, over = now + timedelta(hours=2), now - timedelta(hours=1)
    first = Frame.objects.create(depth=1, state="taken", taken_at=now, due_at=later, **given)
    return [
        first,
        Frame.objects.create(depth=2, parent=first, state="open", due_at=over, **given),
        Frame.objects.create(
            depth=1, state="returned", taken_at=now, ended_at=now, due_at=later, result=1, **given
        ),
        Frame.objects.create(depth=1, state="failed", ended_at=now, due_at=over, **given),
    ]


def _notices(company):
    now = timezone.now()
    payload = {"type": "x", "data": {"subject": "没有答复", "body": "正文"}}
    given = {"organisation": company.organisation, "payload": payload, "created_at": now}
    return [
        OutgoingNotice.objects.create(
            channel=channel,
            state=state,
            event_id=uuid.uuid4(),
            target="a@b.example",
            due_at=now,
            last_problem=problem,
            **given,
        )
        for channel, state, problem in (
            ("webhook", "dead", "连接被拒"),
            ("email", "pending", ""),
            ("email", "sent", ""),
        )
    ]


def _documents(company):
    now = timezone.now()
    ceo = company.agent("ceo")
    given = {"organisation": company.organisation, "created_at": now}
    kinds = [
        ("note", {"for_board": True}),
        ("report", {"report_type": "cost", "department": "技术"}),
        ("prd", {}),
    ]
    documents = [
        Document.objects.create(
            author=ceo, path=f"笔记/{kind}", title="标题", body="正文", sha256=DIGEST, kind=kind,
            folder="笔记/", **more, **given,
        )
        for kind, more in kinds
    ]  # fmt: skip
    memory = Memory.objects.create(
        scope="agent", agent=ceo, author=ceo, text="记住", words="", **given
    )
    artifact = Artifact.objects.create(
        agent=ceo, name="图", version=1, path="图/1", content="内容", sha256=DIGEST, **given
    )
    return [*documents, memory, artifact]


def _workspace(company):
    now = timezone.now()
    agent, verdict = company.agent("devops_worker"), Verdict.objects.get()
    given = {"organisation": company.organisation}
    image = ImageBuild.objects.create(
        digest=f"sha256:{DIGEST}", service="搜索", tag="搜索:1", path=".", built_by=agent,
        built_at=now, **given,
    )  # fmt: skip
    deployments = [
        Deployment.objects.create(
            id=f"DEP-{n}", environment="staging", service=f"搜索{n}", artifact="搜索:1",
            state=state, deployed_by=agent, started_at=now, due_at=now, problem="端口被占用",
            settled_at=None if state == "started" else now, **given,
        )
        for n, state in enumerate(("started", "succeeded", "failed", "unknown"))
    ]  # fmt: skip
    repository, _ = Repository.objects.get_or_create(
        organisation=company.organisation,
        defaults={"main": "main", "source": "https://b.example/仓库", "created_at": now},
    )
    Branch.objects.create(repository=repository, name="功能", commit=COMMIT)
    moved = {
        "organisation": company.organisation,
        "repository": repository,
        "branch": "main",
        "new": COMMIT,
        "at": now,
        "by": "系统",
    }
    work = Contract.objects.get(id=verdict.contract_id)
    moves = [
        BranchMove.objects.create(kind="import", **moved),
        BranchMove.objects.create(kind="push", contract=work, **moved),
        BranchMove.objects.create(
            kind="merge", contract=work, verdict=verdict, merged=COMMIT, **moved
        ),
    ]
    return [image, *deployments, repository, *moves]


def _runs(company):
    now = timezone.now()
    given = {
        "organisation": company.organisation,
        "agent": company.agent("qa_worker"),
        "tool": "run_test",
        "paths": ["测试/"],
        "asked_at": now,
        "ends_by": now + timedelta(hours=1),
    }
    ended = {"started_at": now, "ended_at": now, "output": "通过", "output_sha256": DIGEST}
    return [
        Run.objects.create(**given),
        Run.objects.create(started_at=now, **given),
        Run.objects.create(started_at=now, **given | {"ends_by": now}),
        Run.objects.create(exit_status=0, **ended, **given),
        Run.objects.create(timed_out=True, **ended, **given),
        Run.objects.create(stopped_for="太久了", **ended, **given),
        Run.objects.create(**ended, **given),
    ]


def _skills():
    now = timezone.now()
    return [
        Skill.objects.create(
            name=name, path=f"/技能/{name}", description="说明", text="正文", digest=DIGEST,
            commands=["ls"], allowed_tools=["read_file"], seen_at=now,
        )
        for name in ("甲", "乙")
    ]  # fmt: skip


def _toolbox(company):
    now = timezone.now()
    agent = company.agent("backend_worker")
    for name in JOBS:
        JobRun.objects.update_or_create(name=name, defaults={"last_at": now})
    late = JobRun.objects.create(name="旧作业", last_at=now - timedelta(days=9))
    record = IdempotencyRecord.objects.create(
        agent=agent, key="键", request_digest=b"0" * 32, due_at=now
    )
    return [late, record, ModeGrant.objects.first()]
