"""Folders and file names of documents, and who may write, mark and read them; pure."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from core.decision import Allow, Code, Decision, deny
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.parties import Party, chain_of
from orgchart.policy.paths import can_touch, denying_pattern, expand, is_code
from orgchart.policy.readership import REPORTS, filing_scope, rule_of_reading
from orgchart.policy.vocabulary import BOARD, Access, Kind

TECH = "tech"
TECH_REPORTS = f"{REPORTS}{TECH}/"
PRDS = "docs/prd/"
READ_CODE = frozenset({"read_file", "read_code"})
"""The tools that read code."""
MOST_FOR_BOARD = 30
"""Notes of one agent for the Board in an hour."""
NO_DEPARTMENT = "general"
SLUG_BYTES = 80
NAMELESS = "untitled"


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """From one moment up to, but without, another."""

    begins: datetime
    ends: datetime


def slug_of(title: str) -> str:
    """A title as part of a file's name: letters and digits of any script, joined by '-'.

    At most 80 bytes in UTF-8, never empty, never with a dot or slash, in normal form C.
    """
    text = unicodedata.normalize("NFKC", title).casefold()
    kept = "".join(c if _is_word(c) else " " for c in unicodedata.normalize("NFC", text))
    slug = "-".join(kept.split())
    cut = slug.encode()[:SLUG_BYTES].decode(errors="ignore").strip("-")
    return unicodedata.normalize("NFC", cut) or NAMELESS


def _is_word(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char) in ("Mn", "Mc")


def file_name(title: str, at: datetime) -> str:
    """`{timestamp}-{title_slug}.md` (Spec: files 12); the time goes to the microsecond, in UTC."""
    return f"{at.astimezone(UTC):%Y%m%d%H%M%S%f}-{slug_of(title)}.md"


def notes_folder(agent: Agent) -> str:
    """The folder of an agent's notes (Spec: files 12)."""
    return f"agents/{agent.handle}/notes/"


def department_of(agent: Agent, policy: Policy) -> str:
    """The department whose folder below reports/ takes the agent's reports.

    The roles' scopes decide: the folder that the agent itself may
    write (qa, research), else the one its manager writes or reads (tech, hr, product), and so on
    up the chain; an agent without a department files under its group, or under `general`. Where
    the manager was deactivated the department stays.
    """
    return _department(agent, policy) or agent.group or NO_DEPARTMENT


def department_to_file_in(author: Agent, issuer: Party, policy: Policy) -> str:
    """The department of reports on work: that of who gave it, where it has one; else the author's.

    The Board and the top agent have none, so what a manager reports to it stays in the manager's
    (Spec: files 13).
    """
    given = _department(issuer, policy) if isinstance(issuer, Agent) else ""
    return given or department_of(author, policy)


def _department(agent: Agent, policy: Policy) -> str:
    def superior(handle: str) -> str | None:
        at = agent if handle == agent.handle else policy.agents.get(handle)
        return None if at is None else at.reports_to or at.superior

    above = (policy.agents.get(handle) for handle in chain_of(agent.handle, superior))
    for at in (agent, *filter(None, above)):
        for scope in expand((filing_scope(policy.roles[at.role]),), at):
            if scope:
                return scope.split("/")[1]
    return ""


def reports_folder(department: str) -> str:
    """The folder of a department's reports."""
    return f"{REPORTS}{department}/"


def can_write(path: str, agent: Agent, policy: Policy) -> Decision:
    """Whether the agent may put a document at this path: its role's write scope decides."""
    return can_touch(path, Access.WRITE, agent=agent, files=policy.roles[agent.role].files)


def can_read(path: str, agent: Agent, policy: Policy) -> Decision:
    """Whether the agent may read the document, or the folder, at this path."""
    return can_touch(path, Access.READ, agent=agent, files=policy.roles[agent.role].files)


def may_read_reports_of(author: Agent, reader: Agent, policy: Policy) -> bool:
    """Whether an agent reads another's reports wherever they are filed (Spec: files 14).

    The author does, its managers, and those above them.
    """
    return reader.handle == author.handle or policy.is_above(reader, author)


def is_denied_to(path: str, reader: Agent, policy: Policy) -> bool:
    """Whether a reader's role is denied a path, whatever lies there (Spec: files 2)."""
    denied = expand(policy.roles[reader.role].files.deny, reader)
    return bool(denying_pattern(path, denied)) or is_unread_code(path, reader, policy)


def is_unread_code(path: str, reader: Agent, policy: Policy) -> bool:
    """Whether a path holds code, and the reader's role has no tool that reads it.

    So no mail brings it code either (Spec: mail 44).
    """
    role = policy.roles[reader.role]
    return is_code(path) and not (role.tools - role.denied_tools) & READ_CODE


def may_read_report(path: str, author: Agent | None, reader: Agent, policy: Policy) -> bool:
    """Whether an agent reads a report at this path (Spec: files 14).

    Its author does; its role's scope gives it, or a place above the author; a denial takes it away.
    """
    if author is not None and author.handle == reader.handle:
        return True
    if is_denied_to(path, reader, policy):
        return False
    in_scope = isinstance(can_read(path, reader, policy), Allow)
    return in_scope or (author is not None and may_read_reports_of(author, reader, policy))


def may_read_shared(writer: Agent, reader: Agent, policy: Policy) -> bool:
    """Whether an agent reads what another wrote into a folder that both may write or read.

    Workers never write to each other (Spec: mail 16, files 22); to others their scopes give it.
    """
    kinds = {policy.role_of(each).kind for each in (writer, reader)}
    return kinds != {Kind.WORKER} or bool(rule_of_reading(policy, writer, reader))


def authors_below(reader: Agent, policy: Policy) -> list[int]:
    """The ids of all whose reports an agent reads, its own first."""
    others = (each for each in policy.agents.values() if each.id != reader.id)
    return [reader.id, *(each.id for each in others if may_read_reports_of(each, reader, policy))]


def has_members_below(reader: Agent, department: str, policy: Policy) -> bool:
    """Whether an agent is above agents of a department, in the chain of command."""
    return any(
        reader in policy.chain_above(each) and department_of(each, policy) == department
        for each in policy.agents.values()
    )


def can_mark_for_board(agent: Agent, in_last_hour: int) -> Decision:
    """Only the top agent writes for the Board: an escalation goes step by step.

    Each such note is an e-mail to a person. Spec: escalation 6, escalation 19.
    """
    if agent.superior == BOARD:
        if in_last_hour < MOST_FOR_BOARD:
            return Allow("the top agent's notes go to the Board (spec: escalation 5)")
        return deny(
            Code.RATE_LIMITED,
            f"{agent.handle} has written {MOST_FOR_BOARD} notes for the Board within an hour",
            "wait an hour, then write everything else in one note",
            rule="notes for the Board are few enough to be read (spec: escalation 19)",
            retry_after=3600,
        )
    return deny(
        Code.LEVEL_DENIED,
        f"{agent.handle} reports to {agent.superior}: its notes are not for the Board",
        f"escalate to {agent.superior}, or write the note without for_board",
        rule="escalation goes one step up (spec: escalation 1)",
    )


def parse_date_range(text: object) -> TimeSpan:
    """The days `2026-01-01..2026-01-31`, both included, or the one day; UTC.

    Raises ValueError with the problem, for a text that names no days.
    """
    first, dots, last = str(text).partition("..")
    try:
        begins, ends = _day(first), _day(last if dots else first)
        after = ends + timedelta(days=1)
    except (ValueError, OverflowError) as problem:
        raise ValueError("must be a day such as 2026-01-31, or 2026-01-01..2026-01-31") from problem
    if ends < begins:
        raise ValueError("ends before it begins")
    return TimeSpan(_midnight(begins), _midnight(after))


def _day(text: str) -> date:
    day = date.fromisoformat(text)
    if day.isoformat() != text:  # one spelling only: no weeks, no compact form
        raise ValueError(text)
    return day


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
