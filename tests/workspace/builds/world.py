"""An engine of the test's own, DevOps in coding mode, and images and approvals for it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from contracts.approvals.deployments import approve_deployment
from orgchart.policy.vocabulary import ToolMode
from tests.documents.world import NOW, caller_of, found
from tests.workspace.builds.engine import engine_at
from toolbox import door
from toolbox.models import ModeGrant, Session
from workspace.builds import containers
from workspace.builds.models import ImageBuild

DIGEST = "sha256:" + "a" * 64


@pytest.fixture
def engine(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(containers, "WATCHED", 0.05)
    with engine_at(tmp_path / "engine.sock") as running:
        settings.CONTAINER_ENGINE = f"unix://{running.socket}"
        yield running


@pytest.fixture
def nexus(db):
    return found()


def devops_of(nexus):
    return coding(nexus, "devops_worker")


def coding(nexus, handle):
    caller = caller_of(nexus, handle)
    given = {"mode": ToolMode.CODING, "session_id": caller.session.id, "closed_at": None}
    defaults = {"organisation": nexus, "opened_at": NOW}
    ModeGrant.objects.get_or_create(**given, defaults=defaults)
    Session.objects.filter(id=caller.session.id).update(mode=ToolMode.CODING)
    return replace(caller, session=replace(caller.session, mode=ToolMode.CODING))


def built_in(nexus, engine, digest=DIGEST, service="api", **config):
    engine.image(digest, f"{service}:1", **config)
    ImageBuild.objects.create(
        organisation=nexus, digest=digest, service=service, tag=f"{service}:1", path="docker/",
        built_by_id=caller_of(nexus, "devops_worker").agent.id, built_at=NOW,
    )  # fmt: skip
    return digest


def approve(nexus, **terms):
    return approve_deployment(
        **{
            "caller": caller_of(nexus, "it_manager"), "to": "devops_worker",
            "environment": "production", "artifact": DIGEST,
            "expires_at": NOW + timedelta(hours=1), "reason": "release", "now": NOW, **terms,
        }
    )["contract_id"]  # fmt: skip


def call(caller, tool, now=NOW, key=None, **params):
    return door.call(caller, tool, params, now=now, idempotency_key=key)


def code(answer):
    return answer.body.get("error_code", "OK")


@pytest.fixture
def devops(nexus):
    return devops_of(nexus)
