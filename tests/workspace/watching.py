"""What tests of long runs do meanwhile, and what they look at."""

import threading
from contextlib import contextmanager

from django.db import connection

from core.actors import Person
from core.permissions import PeopleGroup
from ledger.models import Event


@contextmanager
def meanwhile(act):
    """Do this in another thread; what it raises is raised at the end."""
    problems = []

    def run():
        try:
            act()
        except Exception as problem:  # noqa: BLE001  it is raised again below
            problems.append(problem)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join()
    if problems:
        raise problems[0]


def printed(agent):
    """What the agent's event stream got of its runs."""
    rows = Event.objects.filter(for_agent_id=agent.agent.id, kind="run", action="run.printed")
    return [row.details for row in rows.order_by("seq")]


def board_member(organisation):
    return Person(
        username="alice",
        groups=frozenset({PeopleGroup.BOARD}),
        organisation_id=organisation.id,
        is_member=True,
    )
