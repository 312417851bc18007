"""What agents can do to issue contracts."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from contracts.issuing.changes import NamedChange
from contracts.issuing.drafts import ContractDraft
from contracts.issuing.rules import CREATE, GENERATE, RequestedChannel
from contracts.issuing.services import issue_contract
from contracts.results import IssuedContract
from contracts.vocabulary import ContractKind, OrgAct
from core.params import (
    Amount,
    Currency,
    MailBody,
    Moment,
    Name,
    Params,
    PriorityName,
    Reference,
    RowId,
    Title,
)
from orgchart.policy.vocabulary import ToolGroup, ToolMode
from toolbox.caller import Caller
from toolbox.registry import ANY_MODE, tool


class Grant(Params):
    """A channel that a contract opens between two agents while it is open."""

    sender: Name = Field(alias="from")
    recipient: Name = Field(alias="to")
    types: list[Name] | None = Field(None, max_length=20, description="mail types; default all")


class IssueContract(Params):
    """A contract for one of the caller's own (Spec: contracts 7)."""

    to: Name = Field(description="the assignee")
    title: Title
    body: MailBody
    priority: PriorityName = "medium"
    deadline: Moment | None = Field(None, description="ISO 8601")
    kind: Literal["work", "org_change", "deployment_approval", "budget"] = "work"
    mode: Literal["chat_safe", "coding"] = Field(
        "chat_safe", description="of the assignee's session"
    )
    workspace_scope: list[Annotated[str, StringConstraints(max_length=1024)]] = Field(
        default_factory=list,
        max_length=50,
        description="folders; with source, it needs a PASS of QA",
    )
    assigned_branch: Annotated[str, StringConstraints(max_length=200)] | None = None
    grants: list[Grant] = Field(default_factory=list, max_length=20)
    supersedes: Reference | None = Field(None, description="a closed contract it follows")
    answers: RowId | None = Field(None, description="escalation_id that it answers")
    amount: Amount | None = Field(None, description="for kind budget")
    currency: Currency = "USD"

    def draft(self) -> ContractDraft:
        """The draft that services take."""
        return ContractDraft(
            to=self.to,
            title=self.title,
            body=self.body,
            kind=ContractKind(self.kind),
            priority=self.priority,
            deadline=self.deadline,
            mode=ToolMode(self.mode),
            workspace_scope=self.workspace_scope,
            assigned_branch=self.assigned_branch or "",
            grants=[
                RequestedChannel(
                    g.sender, g.recipient, None if g.types is None else frozenset(g.types)
                )
                for g in self.grants
            ],
            supersedes=self.supersedes,
            answers=int(self.answers) if self.answers else None,
            amount=self.amount,
            currency=self.currency if self.amount is not None else "",
        )


class Change(Params):
    """A change of the organisation that an org_change contract allows, once."""

    act: Literal["hire", "describe", "move", "deactivate", "restrict_tools"]
    subject: Name = Field(description="the agent's handle; for hire the new one")
    role: Name | None = Field(None, description="given by hire or move; to change one, required")
    reports_to: Name | None = Field(None, description="of hire or move; to change it, required")
    co_managers: list[Name] = Field(default_factory=list, max_length=20)
    skills: list[Name] = Field(default_factory=list, max_length=50)
    group: Name | None = None
    leads: Name | None = Field(None, description="group that the agent comes to lead")


class GenerateContract(IssueContract):
    """A contract of the top agent, which also authorises changes of the organisation."""

    changes: list[Change] = Field(
        default_factory=list, max_length=50, description="for kind org_change, required there"
    )
    request: Reference | None = Field(
        None, description="for kind budget: mail_id of the approval_request that it answers"
    )
    expires_at: Moment | None = Field(
        None, description="end of an org_change; left out: its deadline, or 7 days"
    )

    def draft(self) -> ContractDraft:
        """The draft that services take."""
        return replace(
            super().draft(),
            changes=[
                NamedChange(
                    OrgAct(each.act),
                    each.subject,
                    each.role or "",
                    each.reports_to or "",
                    tuple(each.co_managers),
                    tuple(each.skills),
                    each.group or "",
                    each.leads or "",
                )
                for each in self.changes
            ],
            request=self.request,
            expires_at=self.expires_at,
        )


@tool(GENERATE, group=ToolGroup.CONTRACT, modes=ANY_MODE)
def generate_contract(caller: Caller, params: GenerateContract, now: datetime) -> IssuedContract:
    """Issue a contract to a manager: work, an org_change authorisation, or a budget."""
    return issue_contract(caller=caller, draft=params.draft(), tool=GENERATE, now=now)


@tool(CREATE, group=ToolGroup.CONTRACT, modes=ANY_MODE)
def create_contract(caller: Caller, params: IssueContract, now: datetime) -> IssuedContract:
    """Issue a contract of work to one of your own workers."""
    return issue_contract(caller=caller, draft=params.draft(), tool=CREATE, now=now)
