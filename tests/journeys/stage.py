"""Agents on a stage: calls over real HTTP, and what they were answered."""

from dataclasses import dataclass, field
from typing import Any

import httpx
from django.utils import timezone

from contracts.closing import close_contract
from contracts.issuing.drafts import ContractDraft
from contracts.issuing.services import issue_for_board
from contracts.models import Contract
from contracts.vocabulary import OPEN_STATES, ContractOutcome
from core.permissions import PeopleGroup
from tests.company import Answer, Company


@dataclass
class Stage:
    """Everybody of the company, reachable by handle."""

    company: Company
    http: httpx.Client
    sessions: dict[str, str] = field(default_factory=dict)

    def call(self, who: str, tool: str, /, headers=None, **params: Any) -> Answer:
        """Call a tool; a parameter `from_` is sent as `from`."""
        body = {("from" if name == "from_" else name): value for name, value in params.items()}
        return self.post(who, f"/api/v1/tools/{tool}", body, headers)

    def done(self, who: str, tool: str, /, **params: Any) -> dict[str, Any]:
        """The result of a call that must be allowed."""
        return self.call(who, tool, **params).result

    def post(self, who: str, path: str, body: Any, headers=None) -> Answer:
        answer = self.http.post(path, json=body, headers={**self._proof(who), **(headers or {})})
        return Answer(answer.status_code, answer.json())

    def get(self, who: str, path: str) -> dict[str, Any]:
        answer = self.http.get(path, headers=self._proof(who))
        assert answer.status_code == 200, answer.text
        return answer.json()

    def _proof(self, who: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.company.key(who)}"}

    @property
    def board(self):
        return self.company.person(PeopleGroup.BOARD, username="ada")

    def order(self, title: str = "Faster search", body: str = "Below one second.") -> str:
        """The Board's contract for the CEO."""
        draft = ContractDraft(to="ceo", title=title, body=body)
        return issue_for_board(person=self.board, draft=draft, now=timezone.now())["contract_id"]

    def close_as_board(self, contract_id: str, outcome: str, reason: str = "Seen.") -> str:
        return close_contract(
            contract_id=contract_id,
            outcome=ContractOutcome(outcome),
            reason=reason,
            expected_version=None,
            caller=self.board,
            now=timezone.now(),
        )["state"]

    def close_everything(self) -> None:
        for contract in Contract.objects.filter(state__in=OPEN_STATES):
            self.close_as_board(contract.id, "cancelled")

    def issue(self, by: str, to: str, **terms: Any) -> str:
        """A contract; the tool is the issuer's own."""
        tool = "generate_contract" if by == "ceo" else "create_contract"
        terms = {"title": "Work", "body": "Do it.", **terms}
        return self.call(by, tool, to=to, **terms).result["contract_id"]

    def issued_and_accepted(self, by: str, to: str, **terms: Any) -> str:
        contract = self.issue(by, to, **terms)
        assert self.call(to, "accept_contract", contract_id=contract).code == "OK"
        return contract

    def mode(self, who: str) -> str:
        return self.get(who, "/api/v1/me")["session"]["mode"]

    def inbox(self, who: str, **filters: Any) -> list[dict[str, Any]]:
        return self.call(who, "read_inbox", **{"status": "all", **filters}).result["mails"]
