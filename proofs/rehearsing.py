"""A company whose calls are explained before, repeated after, and repeated again much later."""

import json
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from unittest.mock import patch

from django.apps import apps
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from core.decision import Denied
from governance.staff.deactivation import deactivate_by_person
from orgchart.second_person.edits import apply_edit
from tests.company import Company
from tests.machines import CompanyMachine
from toolbox.caller import Clock
from toolbox.idempotency import NOT_KEPT
from toolbox.registry import REGISTRY
from toolbox.scheduler import JOBS

NOT_COMPARED = (
    "django_", "auth_", "otp_", "axes_", "ledger_", "toolbox_jobrun", "toolbox_ratebucket",
    "toolbox_usage", "toolbox_stored", "orgchart_apikey", "toolbox_session",
)  # fmt: skip
"""Tables that say who was there, not what was done; the ledger is counted apart."""
NOT_RUN = {"ledger seals", "notices", "git garbage", "repositories"}
"""Jobs with an effect outside of the day's transaction."""
SHUT_OUT = {"UNAUTHENTICATED", *NOT_KEPT}
"""What a repeated call is answered where the agent may not call at all."""


def contents():
    """What the tables of the product hold, a number for each, and the number of events."""
    tables = sorted(model._meta.db_table for model in apps.get_models() if model._meta.managed)
    kept = [name for name in tables if not name.startswith(NOT_COMPARED)]
    sums = ", ".join(f"(SELECT sum(hashtext(t::text)) FROM {name} t)" for name in kept)
    events = "(SELECT count(*) FROM ledger_event WHERE action <> 'call.explained')"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {sums}, {events}")
        return dict(zip((*kept, "events"), cursor.fetchone(), strict=True))


@dataclass
class RehearsingCompany(Company):
    """Of three calls one is explained first, one is repeated at once, and one is made as it is.

    `took` counts what really took place; `shown` is called with what an agent is shown besides.
    """

    turn: int = 0
    kept: list = field(default_factory=list)
    took: Counter = field(default_factory=Counter)
    ahead: timedelta = timedelta(0)
    shown: Callable = lambda handle, body: None

    def call(self, handle, tool, /, headers=None, **params):
        self.turn += 1
        self.key(handle)  # else it is issued by the first call
        if self.turn % 3 == 0:
            return self.explained(handle, tool, headers, params)
        if self.turn % 3 == 1:
            return self.repeated(handle, tool, headers, params)
        return super().call(handle, tool, headers, **params)

    def _checked(self, handle, answer):
        """Also that nothing breaks: a constraint of the database is no refusal of a rule."""
        assert answer.status < 500, answer.body
        return super()._checked(handle, answer)

    def explained(self, handle, tool, headers, params):
        """An explanation changes nothing, and says what the call will then be answered."""
        before = contents()
        body = {("from" if name == "from_" else name): value for name, value in params.items()}
        asked = {"tool": tool, "params": json.loads(json.dumps(body, default=str))}
        told = self.post("/api/v1/explain", asked, handle, headers)
        after = contents()
        if told.status != 200:
            before.pop("events"), after.pop("events")
        assert after == before, (tool, changed(before, after), told.body)
        self.shown(handle, told.body)
        answer = super().call(handle, tool, headers, **params)
        if told.status == 200:
            said = told.body["error_code"] or "OK"
            self.took[f"explained {said == 'OK'}"] += 1
            rehearsed = REGISTRY.get(tool) is None or REGISTRY.get(tool).dry_run is None
            assert said == answer.code or (said == "OK" and not rehearsed), (told.body, answer.body)
        return answer

    def repeated(self, handle, tool, headers, params):
        headers = {**(headers or {}), "Idempotency-Key": f"{id(self)} {self.turn}"}
        answer = super().call(handle, tool, headers, **params)
        if answer.code not in SHUT_OUT and not getattr(REGISTRY.get(tool), "read_only", False):
            self.kept.append((handle, tool, headers, params, answer, self.now()))
            self.repeat(len(self.kept) - 1)
        return answer

    def repeat(self, at):
        """Make a call again: the first answer or none, and nothing of it happens twice."""
        if not self.kept:
            return
        handle, tool, headers, params, answer, _ = self.kept[at % len(self.kept)]
        if handle not in self.keys and not self.agent(handle).active:
            return  # it gets no key
        self.key(handle)
        before = contents()
        again = Company.call(self, handle, tool, headers, **params)
        self.shown(handle, again.body)
        after = contents()
        if again.code in SHUT_OUT:
            before.pop("events"), after.pop("events")
            self.took["shut out"] += 1
        else:
            assert again == answer, (tool, params, answer.body, again.body)
            self.took["repeated"] += 1
        assert after == before, (tool, changed(before, after))

    def let_pass(self, hours):
        """Let the clock jump ahead, then run every job; answers are kept for a day."""
        self.ahead += timedelta(hours=hours)
        self.kept = [one for one in self.kept if one[-1] > self.now() - timedelta(hours=23)]
        for name in sorted(JOBS.keys() - NOT_RUN):
            JOBS[name].handle(self.now())
        self.took["let pass"] += 1

    def now(self):
        return timezone.now() + self.ahead

    @contextmanager
    def clock(self):
        """While it is entered every call is made at its time, as often as wanted."""
        real, often = Clock.now, 10**6
        with (
            override_settings(NEXUS_RATE_BURST=often, NEXUS_RATE_PER_MINUTE=often),
            patch.object(Clock, "now", lambda clock: real(clock) + self.ahead),
        ):
            yield


def changed(before, after):
    return {name for name in before if before[name] != after[name]}


class RehearsedDay(CompanyMachine):
    """A day of rehearsed calls, in which people change the organisation."""

    kind = RehearsingCompany

    def __init__(self):
        super().__init__()
        self.around = ExitStack()
        self.around.enter_context(self.here.clock())

    def teardown(self):
        self.did.update(self.here.took)
        try:
            super().teardown()
        finally:
            self.around.close()

    def edit(self, name, edit):
        """By the operator, who needs no second person."""
        with suppress(Denied):
            apply_edit(
                edit, organisation_id=self.here.organisation.id, caller=self.here.system,
                now=self.here.now(), reason="R", expected_version=None,
            )  # fmt: skip
            self.did[name] += 1
        self.changed()

    def deactivate(self, who, *, by):
        """By a person of this group; who leaves has a key, and tries it later."""
        if self.here.agent(who).active:
            self.here.key(who)
        with suppress(Denied):
            deactivate_by_person(
                person=self.here.person(by), agent=who, reason="R", now=self.here.now(),
                expected_version=self.here.policy.version,
            )  # fmt: skip
            self.did["deactivate"] += 1
        self.changed()

    def changed(self):
        """What follows a change of the organisation, done or refused."""
