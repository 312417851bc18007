"""A whole company for tests: the NEXUS pack loaded, callers by real keys, calls over real HTTP."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from django.utils import timezone
from pydantic import TypeAdapter
from pydantic_core import to_json

from core.actors import Person, System
from orgchart.compiling import policy_version
from orgchart.keys import issue_key
from orgchart.models import Agent, Organisation
from orgchart.organisation_settings import merged
from orgchart.packs.loading import load_pack
from orgchart.policy.compiled import Policy
from orgchart.policy_cache import current_policy
from tests.agents import AgentsClient
from tests.next_steps import check_step_without_door
from tests.rows import make_once
from toolbox.answers import ErrorBody
from toolbox.authentication import authenticate
from toolbox.caller import Caller
from toolbox.quotas.stored import AHEAD, AHEAD_BYTES, AHEAD_ROWS
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


def count_ahead(organisation: Organisation) -> None:
    """Count the next small calls of each agent."""
    values = merged(organisation.settings)
    for agent in organisation.agents.all():
        counted = (agent.id, values["organisation_bytes"], values["organisation_rows"])
        AHEAD.put(counted, AHEAD_BYTES, AHEAD_ROWS)


@dataclass
class Company:
    """One organisation, its agents' keys made when first needed."""

    organisation: Organisation
    keys: dict[str, str] = field(default_factory=dict)
    http: AgentsClient = field(default_factory=lambda: AgentsClient(HTTP_HOST="127.0.0.1"))

    @property
    def policy(self) -> Policy:
        return current_policy(self.organisation.id)

    @property
    def policy_version(self) -> int:
        """As it is stored now."""
        return policy_version(self.organisation.id)

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
            is_member_of_all=True,
        )

    def caller(self, handle: str) -> Caller:
        return authenticate(
            authorization=f"Bearer {self.key(handle)}", session_id=None, request_id="test"
        )

    def count_ahead(self) -> None:
        """As after the first small call of each agent: the next ones are counted already."""
        count_ahead(self.organisation)

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


def load_company(pack: str = "nexus", *, now: datetime | None = None) -> Company:
    """The company of a shipped pack, loaded as an operator would."""

    def load() -> Organisation:
        caller = System(name="tests", organisation_id=0)
        load_pack(PACKS / pack, caller=caller, now=now or timezone.now())
        return Organisation.objects.get(slug=pack)

    return Company(load() if now else make_once(f"loaded {pack}", load))
