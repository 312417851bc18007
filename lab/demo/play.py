"""Plays the day from its first story to its last and tidies up what a broken one left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
from django.contrib.auth.models import User
from django.utils import timezone

from contracts.closing import close_contract
from contracts.models import Contract
from contracts.vocabulary import OPEN_STATES, ContractOutcome
from core.actors import Person
from core.permissions import PeopleGroup
from lab.demo import cases, stories
from lab.demo.client import DemoAgent
from lab.demo.day import Day, Unexpected
from lab.demo.narrator import Narrator
from orgchart.keys import issue_key
from orgchart.models import Agent as AgentRow
from orgchart.models import Organisation

ORGANISATION = "nexus"
CAST = (
    "ceo",
    "it_manager",
    "hr_manager",
    "product_manager",
    "backend_worker",
    "frontend_worker",
    "devops_worker",
    "qa_worker",
    "research_worker",
)


class NotRunning(Exception):
    """The company does not answer; the message says what to start."""


def play_day(*, url: str, keys: Mapping[str, str], out: Any, colour: bool) -> bool:
    """Play every story; whether every answer was the expected one.

    Raises NotRunning where the installation does not answer or a key is missing.
    """
    _require_running(url, keys)
    narrator = Narrator(out, colour=colour)
    cast = [*CAST, *(name for name in cases.CAST if name in keys)]
    agents = {name: DemoAgent(name=name, key=keys[name], url=url) for name in cast}
    board = _board()
    try:
        day = Day(agents=agents, board=board, narrator=narrator, hire=_key_giver(agents, url))
        clear(board)
        _begin(day)
        for title, story in stories.STORIES:
            narrator.chapter(title)
            try:
                story(day)
            except Unexpected as problem:
                narrator.broken(title, str(problem))
                clear(board)
        clear(board)
        if not narrator.wrong:
            narrator.chapter("Evening: what is left open")
            stories.work_left_open(day)
            narrator.remark(f"The Board looks at it under Waiting for you: {url}/admin/")
    finally:
        if narrator.wrong:
            clear(board)
        for agent in agents.values():
            agent.close()
    narrator.account()
    return not narrator.wrong


def _require_running(url: str, keys: Mapping[str, str]) -> None:
    missing = [name for name in CAST if name not in keys]
    if missing:
        raise NotRunning(
            f"no key for {', '.join(missing)}: `manage.py issue_key {ORGANISATION} AGENT` makes one"
        )
    try:
        httpx.get(f"{url}/healthz", timeout=5.0).raise_for_status()
    except httpx.HTTPError as problem:
        raise NotRunning(
            f"nothing answers at {url} ({problem}); start it with `make up`, or name another "
            "address with --url or PORT"
        ) from problem


def _board() -> Person:
    """A member of the Board, as `make up` creates the first one."""
    organisation = Organisation.objects.get(slug=ORGANISATION)
    user = (
        User.objects.filter(groups__name=PeopleGroup.BOARD, is_active=True).order_by("id").first()
    )
    return Person(
        username=user.username if user else "board",
        organisation_id=organisation.id,
        groups=frozenset({PeopleGroup.BOARD}),
        is_member=True,
    )


def _key_giver(agents: dict[str, DemoAgent], url: str) -> Any:
    """People give a key to the agent that HR hires; it joins the cast."""

    def give(handle: str) -> DemoAgent:
        row = AgentRow.objects.get(organisation__slug=ORGANISATION, handle=handle)
        key = issue_key(agent=row, caller=_board(), now=timezone.now())
        agents[handle] = DemoAgent(name=handle, key=key, url=url)
        return agents[handle]

    return give


def _begin(day: Day) -> None:
    """Everybody opens a session; who cannot, has no valid key."""
    day.narrator.chapter("Morning: the agents open a session")
    for name, agent in list(day.agents.items()):
        answer = agent.begin()
        try:
            day.judge(name, "sessions.open", answer)
        except Unexpected as problem:
            raise NotRunning(f"{problem}; is its key revoked?") from problem


def clear(board: Person) -> None:
    """Cancel, as the Board, what a demo left open: a second day begins like the first."""
    left = Contract.objects.filter(
        organisation_id=board.organisation_id,
        state__in=OPEN_STATES,
        title__startswith=stories.MARK,
    )
    for contract_id in list(left.values_list("id", flat=True)):
        close_contract(
            contract_id=contract_id,
            outcome=ContractOutcome.CANCELLED,
            reason="the demo is over",
            expected_version=None,
            caller=board,
            now=timezone.now(),
        )
