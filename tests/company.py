"""A whole company for tests: the NEXUS pack loaded, callers by real keys, calls over real HTTP."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import connection
from django.db.models import Q
from django.test import Client
from django.utils import timezone
from pydantic import TypeAdapter
from pydantic_core import to_json

from core.actors import Person, System
from orgchart.compiling import POLICIES, current_policy
from orgchart.models import Agent, Organisation
from orgchart.packs.loading import load_pack
from orgchart.policy.compiled import Policy
from orgchart.services import issue_key
from tests.next_steps import check_step_without_door
from toolbox.answers import ErrorBody
from toolbox.authentication import authenticate
from toolbox.caller import Caller
from toolbox.registry import REGISTRY

PACKS = Path(__file__).parent.parent / "packs"


ERROR = TypeAdapter(ErrorBody)


def check_answer(body: dict[str, Any]) -> None:
    """Fail for a result that is not of its tool's type, and for an error of another shape."""
    if body.get("ok") is True and (tool := REGISTRY.get(body.get("tool_name", ""))):
        assert body.keys() == {"ok", "tool_name", "result"}
        tool.result_type.validate_json(to_json(body["result"]), strict=True)
    elif body.get("ok") is False:
        ERROR.validate_json(to_json(body), strict=True)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call was answered over HTTP."""

    status: int
    body: dict[str, Any]

    def __post_init__(self) -> None:
        """Check every answer of the suite against its schema."""
        check_answer(self.body)

    @property
    def result(self) -> dict[str, Any]:
        """What the tool returned; fails where it was refused."""
        assert self.status == 200, self.body
        return self.body["result"]

    @property
    def code(self) -> str:
        """The error code, or `OK`."""
        return "OK" if self.status == 200 else self.body["error_code"]


@dataclass
class Company:
    """One organisation, its agents' keys made when first needed."""

    organisation: Organisation
    keys: dict[str, str] = field(default_factory=dict)
    http: Client = field(default_factory=lambda: Client(HTTP_HOST="127.0.0.1"))

    @property
    def policy(self) -> Policy:
        return current_policy(self.organisation.id)

    def agent(self, handle: str) -> Agent:
        return Agent.objects.get(organisation=self.organisation, handle=handle)

    def key(self, handle: str) -> str:
        if handle not in self.keys:
            self.keys[handle] = issue_key(
                agent=self.agent(handle), caller=self.system, now=timezone.now()
            )
        return self.keys[handle]

    @property
    def system(self) -> System:
        return System(name="tests", organisation_id=self.organisation.id)

    def person(self, *offices: str, username: str = "alice") -> Person:
        return Person(
            username=username,
            organisation_id=self.organisation.id,
            groups=frozenset(offices),
            is_member=True,
        )

    def caller(self, handle: str) -> Caller:
        return authenticate(
            authorization=f"Bearer {self.key(handle)}", session_id=None, request_id="test"
        )

    def call(
        self, handle: str, tool: str, /, headers: dict[str, str] | None = None, **params: Any
    ) -> Answer:
        """Call a tool over HTTP; a parameter named `from_` is sent as `from`."""
        body = {("from" if name == "from_" else name): value for name, value in params.items()}
        return self.post(f"/api/v1/tools/{tool}", body, handle, headers)

    def post(
        self, path: str, body: Any, handle: str, headers: dict[str, str] | None = None
    ) -> Answer:
        answer = self.http.post(
            path,
            json.dumps(body, default=str),
            content_type="application/json",
            headers={"Authorization": f"Bearer {self.key(handle)}", **(headers or {})},
        )
        return self._checked(handle, Answer(answer.status_code, answer.json()))

    def get(self, path: str, handle: str, headers: dict[str, str] | None = None) -> Answer:
        answer = self.http.get(
            path, headers={"Authorization": f"Bearer {self.key(handle)}", **(headers or {})}
        )
        return self._checked(handle, Answer(answer.status_code, answer.json()))

    def _checked(self, handle: str, answer: Answer) -> Answer:
        """The answer, its next step checked; those of the door are checked where they are given."""
        if answer.body.get("ok") is False and not answer.body["tool_name"]:
            check_step_without_door(answer.body, self.policy.agents[handle], self.policy)
        return answer


_snapshots: dict[str, dict[str, str]] = {}
"""Of each pack that this process has loaded: the rows of each table, as JSON."""


def load_company(pack: str = "nexus", *, now: datetime | None = None) -> Company:
    """The company of a shipped pack, loaded as an operator would.

    Within a test's own transaction a pack is read once in a process, and its rows are put back for
    every further test: they are the same rows, with the same ids.
    """
    POLICIES.clear()
    if now is None and connection.in_atomic_block and _can_be_restored(pack):
        _restore(_snapshots[pack])
    else:
        before = _counts()
        caller = System(name="tests", organisation_id=0)
        load_pack(PACKS / pack, caller=caller, now=now or timezone.now())
        if now is None and connection.in_atomic_block and not any(before.values()):
            _snapshots[pack] = _rows()
    return Company(Organisation.objects.get(slug=pack))


def _can_be_restored(pack: str) -> bool:
    """Whether its rows are known, and none of them is there: not loaded, not renamed."""
    if pack not in _snapshots:
        return False
    ids = [row["id"] for row in json.loads(_snapshots[pack]["orgchart_organisation"])]
    return not Organisation.objects.filter(Q(slug=pack) | Q(id__in=ids)).exists()


def _tables() -> list[str]:
    return sorted(
        model._meta.db_table
        for model in apps.get_models(include_auto_created=True)
        if model._meta.app_label in ("orgchart", "ledger")
    )


def _counts() -> dict[str, int]:
    with connection.cursor() as cursor:
        found = {}
        for table in _tables():
            cursor.execute(f"SELECT count(*) FROM {table}")
            found[table] = cursor.fetchone()[0]
    return found


def _rows() -> dict[str, str]:
    with connection.cursor() as cursor:
        found = {}
        for table in _tables():
            cursor.execute(f"SELECT json_agg(row_to_json(t))::text FROM {table} t")
            rows = cursor.fetchone()[0]
            if rows is not None:
                found[table] = rows
    return found


def _restore(snapshot: dict[str, str]) -> None:
    inserts = ", ".join(
        f"{table}_rows AS (INSERT INTO {table} "
        f"SELECT * FROM json_populate_recordset(NULL::{table}, %({table})s::json))"
        for table in snapshot
    )
    with connection.cursor() as cursor:
        cursor.execute(f"WITH {inserts} SELECT 1", snapshot)
        for table in snapshot.keys() - {"ledger_event"}:
            cursor.execute(  # ids that are given next lie behind those put back
                "SELECT setval(s, GREATEST(max(id), nextval(s))) "
                f"FROM {table}, pg_get_serial_sequence('{table}', 'id') AS s GROUP BY s"
            )
