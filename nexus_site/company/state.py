"""What each agent is doing now, of a whole organisation in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext_noop

from contracts.models import Contract
from contracts.vocabulary import AT_WORK
from mailroom.models import Escalation
from mailroom.vocabulary import UNSETTLED
from orgchart.models import Agent
from orgchart.pauses.services import is_paused
from orgchart.policy.vocabulary import BOARD
from tasks.models import Task
from tasks.vocabulary import Status


@dataclass(frozen=True, slots=True)
class Work:
    """The contract that an agent works under, and its state; its id for a title that is hidden."""

    id: str
    title: str
    mode: str
    state: str


@dataclass(frozen=True, slots=True)
class Wait:
    """For whose answer an agent waits, and since when."""

    on: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentState:
    """One agent now. `condition` is what its colour says."""

    id: int
    handle: str
    condition: str
    work: Work | None = None
    wait: Wait | None = None
    tasks: int = 0


def states_of(
    organisation_id: int, agent_id: int | None = None, *, with_titles: bool = False
) -> Mapping[str, AgentState]:
    """The state of every agent, or of one, by handle; queries do not grow with the agents.

    `with_titles` is for who may read contracts: agents write their titles (Spec: people 52).
    """
    whose = (organisation_id, agent_id)
    work = _work(*whose, title="title" if with_titles else "id")
    waits, tasks = _waits(*whose), _tasks(*whose)
    found = {}
    agents = Agent.objects.filter(organisation=organisation_id, **_only("id", agent_id))
    for agent in agents.annotate(is_paused=is_paused("id")).order_by("handle"):
        condition = _condition(agent, agent.id in work, agent.id in waits)
        found[agent.handle] = AgentState(
            id=agent.id,
            handle=agent.handle,
            condition=condition,
            work=work.get(agent.id),
            wait=waits.get(agent.id),
            tasks=tasks.get(agent.id, 0),
        )
    return found


def _condition(agent: Agent, is_working: bool, is_waiting: bool) -> str:  # noqa: FBT001
    if not agent.active:
        return gettext_noop("deactivated")
    if agent.is_paused:  # type: ignore[attr-defined]  # annotated by states_of
        return gettext_noop("paused")
    if is_waiting:
        return gettext_noop("waiting")
    return gettext_noop("working") if is_working else gettext_noop("idle")


def _only(column: str, agent_id: int | None) -> dict[str, int]:
    """The condition that keeps one agent's rows; none for all agents."""
    return {} if agent_id is None else {column: agent_id}


def _work(organisation_id: int, agent_id: int | None, *, title: str) -> dict[int, Work]:
    """The newest contract that each agent works under; work in progress before work in review."""
    rows = Contract.objects.filter(
        organisation=organisation_id, state__in=AT_WORK, **_only("assignee_id", agent_id)
    )
    newest = rows.order_by("assignee_id", "state", "-id").distinct("assignee_id")
    columns = newest.values_list("assignee_id", "id", title, "mode", "state")
    return {assignee: Work(*rest) for assignee, *rest in columns}


def _waits(organisation_id: int, agent_id: int | None) -> dict[int, Wait]:
    """The oldest escalation of each agent that is not answered."""
    rows = Escalation.objects.filter(
        organisation=organisation_id, state__in=UNSETTLED, **_only("sender_id", agent_id)
    )
    oldest = rows.order_by("sender_id", "id").distinct("sender_id")
    columns = oldest.values_list("sender_id", "recipient__handle", "mail__created_at")
    return {sender: Wait(on or BOARD, since) for sender, on, since in columns}


def _tasks(organisation_id: int, agent_id: int | None) -> dict[int, int]:
    """How many tasks each agent has started."""
    rows = Task.objects.filter(
        organisation=organisation_id,
        status=Status.IN_PROGRESS,
        owner__isnull=False,
        **_only("owner_id", agent_id),
    )
    found: dict[int, int] = {}
    for owner in rows.order_by().values_list("owner_id", flat=True)[:10_000]:
        found[owner] = found.get(owner, 0) + 1
    return found
