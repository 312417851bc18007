"""Mails sent and read by the services themselves, and the rows that they leave."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction

from contracts.models import Contract
from core.wording import Part
from documents.files import tree_of
from mailroom.delivery import MailDraft
from mailroom.models import Mail
from mailroom.outgoing import outbox
from orgchart.models import Agent, Organisation
from tests.company import Answer, Company
from toolbox import door

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


def after(**time: float) -> datetime:
    """A moment of the fake clock."""
    return NOW + timedelta(**time)


def call(company: Company, who: str, tool: str, /, at: datetime = NOW, **params: Any) -> Answer:
    """A call through the door at a moment of the fake clock; `from_` is sent as `from`."""
    body = {("from" if name == "from_" else name): value for name, value in params.items()}
    answer = door.call(company.caller(who), tool, body, now=at)
    return Answer(answer.status, dict(answer.body))


def send(company: Company, who: str, to: str, at: datetime = NOW, **fields: Any) -> Answer:
    """A mail through the door."""
    mail = {"type": "info", "subject": "Hello", "body": "A word.", **fields}
    return call(company, who, "send_mail", at, to=to, **mail)


def sent(company: Company, who: str, to: str, at: datetime = NOW, **fields: Any) -> str:
    """A delivered mail's id."""
    return send(company, who, to, at, **fields).result["mail_id"]


def draft(to: str, **fields: Any) -> MailDraft:
    return MailDraft(
        **{"to": to, "mail_type": "info", "subject": "Hello", "body": "A word.", **fields}
    )


def mails(company: Company, to: str, *, sender: str = "") -> list[Mail]:
    """What an agent received, newest first."""
    found = Mail.objects.filter(organisation=company.organisation, to_agent=to)
    return list(found.filter(from_agent=sender) if sender else found)


def notify_board(company: Company, *, subject: Part, at: datetime = NOW) -> int:
    """A notice to the Board, in a transaction of its own; returns how many channels there are."""
    with transaction.atomic():
        return outbox.notify_board(
            policy=company.policy,
            event="escalation.unanswered",
            subject=subject,
            body="Nobody answers.",
            data={"escalation": "7"},
            caller=company.system,
            now=at,
        )


def configure(company: Company, **settings: Any) -> None:
    """Change the organisation's settings; the policy counts on."""
    row = Organisation.objects.get(id=company.organisation.id)
    row.settings |= settings
    row.policy_version += 1
    row.save()


def state_of(contract_id: str) -> str:
    return str(Contract.objects.get(id=contract_id).state)


def put_file(company: Company, path: str, content: bytes = b"content") -> str:
    """A file of the company tree, as a person or a tool left it there."""
    tree_of(company.organisation.slug).write(path, content)
    return path


def put_in_clone(
    company: Company, path: str, content: bytes = b"content", *, who: str = "backend_worker"
) -> str:
    """A file of the repository in an agent's own clone."""
    put_file(company, f"agents/{who}/workspace/{path}", content)
    return path


def deactivate(company, handle):
    Agent.objects.filter(organisation=company.organisation, handle=handle).update(active=False)
    configure(company)


def move_backend_away(company: Company) -> None:
    """The backend worker reports to a second IT manager from now on."""
    chief = company.agent("it_manager")
    other = Agent.objects.create(
        organisation=company.organisation,
        handle="it_two",
        role=chief.role,
        title="IT",
        reports_to=chief.reports_to,
    )
    Agent.objects.filter(organisation=company.organisation, handle="backend_worker").update(
        reports_to=other
    )
    configure(company)
