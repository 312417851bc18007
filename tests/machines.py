"""What the state machines of a company share: each day begins as it was loaded, and is undone."""

from hypothesis.stateful import RuleBasedStateMachine

from orgchart.policy_cache import POLICIES
from tests.company import Company
from tests.loaded import rolled_back


class CompanyMachine(RuleBasedStateMachine):
    """One day of the `company` that a test gives; keys are made anew, policies read anew."""

    company: Company

    def __init__(self):
        super().__init__()
        POLICIES.clear()
        self._begun = rolled_back()
        next(self._begun)
        self.here = Company(self.company.organisation)
        self.here.organisation.refresh_from_db()

    def teardown(self):
        next(self._begun, None)
        POLICIES.clear()
