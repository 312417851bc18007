"""An organisation from a shipped pack in the database, and callers in it."""

from datetime import UTC, datetime
from uuid import uuid4

from orgchart.models import Agent, ContactRule, MailTypeRule, Organisation, Role
from orgchart.policy.vocabulary import ToolMode
from tests.oracle.reading import agents, read, roles
from tests.rows import make_once, present_policy
from toolbox.caller import Caller, CallerSession
from toolbox.models import Session

NOW = datetime(2026, 2, 19, 9, 30, 0, 123456, tzinfo=UTC)


def found(pack: str = "nexus", slug: str | None = None) -> Organisation:
    """The pack as an organisation, row by row."""
    name = slug or pack
    return make_once(f"{pack} found as {name}", lambda: _insert(pack, name))


def _insert(pack: str, slug: str) -> Organisation:
    head = read(pack, "organisation.yaml")
    organisation = Organisation.objects.create(
        slug=slug, name=head["name"], settings=head["settings"]
    )
    made = {name: _role(organisation, name, row) for name, row in roles(pack).items()}
    protocol = read(pack, "mail-protocol.yaml")
    MailTypeRule.objects.bulk_create(
        MailTypeRule(
            organisation=organisation,
            name=name,
            senders=None if row["senders"] == "all" else row["senders"],
            issued_by=row.get("issued_by", []),
            to_superior=row.get("to") == "superior",
        )
        for name, row in protocol["types"].items()
    )
    ContactRule.objects.bulk_create(
        ContactRule(
            organisation=organisation,
            sender=made[row["from"]],
            recipient=made[row["to"]] if "to" in row else None,
            types=row.get("types"),
            needs_contract=row.get("needs_contract", False),
            relation=row.get("relation", "any"),
        )
        for row in [*protocol["contacts"], *protocol.get("board", [])]
    )
    _agents(organisation, made, agents(pack))
    return organisation


def _role(organisation: Organisation, name: str, row: dict) -> Role:
    files = row["files"]
    return Role.objects.create(
        organisation=organisation,
        name=name,
        title=row["title"],
        level=row["level"],
        kind=row["kind"],
        summary=row["summary"],
        tools=row["tools"],
        denied_tools=row["denied_tools"],
        prohibitions=row["prohibitions"],
        files_read=files["read"],
        files_write=files["write"],
        files_deny=files["deny"],
        files_contract=files["contract"],
        task_lead=row.get("task_lead", False),
    )


def _agents(organisation: Organisation, made: dict[str, Role], rows: dict[str, dict]) -> None:
    people = {
        handle: Agent.objects.create(
            organisation=organisation, handle=handle, role=made[row["role"]], title=row["title"]
        )
        for handle, row in rows.items()
    }
    for handle, row in rows.items():
        above = people.get(row["reports_to"])
        Agent.objects.filter(id=people[handle].id).update(reports_to=above)
        people[handle].co_managers.set(people[h] for h in row.get("co_managers", []))


def caller_of(
    organisation: Organisation, handle: str, mode: ToolMode = ToolMode.CHAT_SAFE
) -> Caller:
    """A call of that agent under the policy of this moment."""
    policy = present_policy(organisation)
    agent = policy.agents[handle]
    session, _ = Session.objects.get_or_create(
        organisation=organisation,
        agent_id=agent.id,
        standing=True,
        defaults={"mode": ToolMode.CHAT_SAFE, "opened_at": NOW},
    )
    return Caller(
        agent=agent,
        policy=policy,
        session=CallerSession(str(session.id), mode),
        request_id=uuid4().hex,
    )
