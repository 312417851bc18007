"""Reading mail-protocol.yaml."""

from __future__ import annotations

from collections.abc import Collection

from orgchart import catalogue
from orgchart.packs.fields import Section
from orgchart.packs.roles import Remember
from orgchart.policy.compiled import ContactRule, MailTypeRule
from orgchart.policy.violation import Subject
from orgchart.policy.vocabulary import BOARD, Relation

ALL = "all"
SUPERIOR = "superior"


def read_types(
    file: Section, roles: Collection[str], remember: Remember
) -> tuple[MailTypeRule, ...]:
    """The ceilings by type."""
    file.allow("types", "contacts", "board", required=("types", "contacts"))
    types = file.section("types")
    found = []
    if types is None:
        return ()
    for name in types:
        section = types.section(name)
        if section is None or not types.is_name(name, types.line_of(name), None, "mail type"):
            continue
        section.line = types.line_of(name)
        if len(name) > 32:
            section.note(section.line, f"{name} is longer than 32 characters", "shorten it")
        remember(Subject.MAIL_TYPE, name, section)
        found.append(_type(name, section, roles))
    return tuple(found)


def _type(name: str, section: Section, roles: Collection[str]) -> MailTypeRule:
    section.allow("senders", "issued_by", "to", "description", required=("senders",))
    if "to" in section:
        section.name("to", known=(SUPERIOR,), what="way to send")
    return MailTypeRule(
        name=name,
        senders=_senders(section, roles),
        issued_by=section.names(
            "issued_by", known=frozenset(catalogue.known()) or None, what="tool"
        ),
        to_superior="to" in section,
        description=section.text("description", longest=1000),
    )


def _senders(section: Section, roles: Collection[str]) -> frozenset[str] | None:
    if section.is_text("senders"):
        if section.text("senders") == ALL:
            return None
        section.note(section.line_of("senders"), "senders must be a list", f"or `{ALL}`")
        return frozenset()
    return frozenset(section.names("senders", known=roles, what="role"))


def read_contacts(
    file: Section, roles: Collection[str], remember: Remember
) -> tuple[ContactRule, ...]:
    """The rules of the pairs, and who may write to the Board."""
    types = file.section("types") or ()
    found: dict[tuple[str, str], ContactRule] = {}
    for key in ("contacts", "board"):
        for section in file.sections(key):
            rule = _contact(section, roles, list(types), to_board=key == "board")
            if (rule.sender, rule.recipient) in found and rule.sender and rule.recipient:
                section.note(section.line, f"{rule.label} is there twice", "keep one of them")
            remember(Subject.CONTACT, rule.label, section)
            found.setdefault((rule.sender, rule.recipient), rule)
    return tuple(found.values())


def _contact(
    section: Section, roles: Collection[str], types: Collection[str], *, to_board: bool
) -> ContactRule:
    ends = ("from",) if to_board else ("from", "to")
    section.allow(*ends, "types", "needs_contract", "relation", required=ends)
    given = section.names("types", known=types, what="mail type")
    return ContactRule(
        sender=section.name("from", known=roles, what="role"),
        recipient=BOARD if to_board else section.name("to", known=roles, what="role"),
        types=frozenset(given) if "types" in section else None,
        needs_contract=section.flag("needs_contract"),
        relation=section.choice("relation", Relation, Relation.ANY),
    )
