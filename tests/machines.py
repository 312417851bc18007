"""What the state machines of a company share: each day begins as it was loaded, and is undone."""

from collections import Counter

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine
from hypothesis.stateful import run_state_machine_as_test as run

from orgchart.policy_cache import POLICIES
from tests.company import Company, load_company
from tests.loaded import rolled_back


class CompanyMachine(RuleBasedStateMachine):
    """One day of the `company` that a test gives; keys are made anew, policies read anew."""

    company: Company
    did: Counter[str]
    """How often each kind of move took effect, in all days."""
    kind = Company
    """What makes the calls of the day."""

    def __init__(self):
        super().__init__()
        POLICIES.clear()
        self._begun = rolled_back()
        next(self._begun)
        self.here = self.kind(self.company.organisation)
        self.here.organisation.refresh_from_db()

    def teardown(self):
        next(self._begun, None)
        POLICIES.clear()


def play(machine, *, days, steps, pack="nexus", moves=frozenset()):
    """Each of the `moves` takes effect in these days or in as many again, up to ten times.

    A move that is always refused proves nothing; one that chance left out is given more days.
    """
    day = type("OneDay", (machine,), {"company": load_company(pack), "did": Counter()})
    for _ in range(10):
        run(
            day,
            settings=settings(
                max_examples=days,
                stateful_step_count=steps,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate],
            ),
        )
        never = moves - set(+day.did)
        if not never:
            return
    raise AssertionError(f"never took effect: {never}; {day.did}")
