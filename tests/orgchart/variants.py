"""The NEXUS pack with one thing changed."""

from dataclasses import replace

from orgchart.packs.checking import sound_pack
from orgchart.packs.pack import Pack, PackToolRestriction, Staff
from orgchart.policy.compiled import ContactRule, MailTypeRule, ToolRestriction
from tests.orgchart.world import PACKS

NEXUS = sound_pack(PACKS / "nexus")
SOLO = sound_pack(PACKS / "soloqueue")


def with_role(name, pack: Pack = NEXUS, **changes) -> Pack:
    """The pack with one role changed; `more_tools` are added to its own."""
    more = frozenset(changes.pop("more_tools", ()))
    return replace(
        pack,
        roles=tuple(
            replace(role, **{"tools": role.tools | more} | changes) if role.name == name else role
            for role in pack.roles
        ),
    )


def with_agent(who, pack: Pack = NEXUS, /, **changes) -> Pack:
    return replace(
        pack,
        staff=tuple(replace(s, **changes) if s.handle == who else s for s in pack.staff),
    )


def with_contact(sender, recipient, **fields) -> Pack:
    """The pack with one rule added, or put in the place of the pair's own."""
    rule = ContactRule(sender, recipient, **fields)
    kept = [c for c in NEXUS.contacts if (c.sender, c.recipient) != (sender, recipient)]
    return replace(NEXUS, contacts=(*kept, rule))


def with_type(**fields) -> Pack:
    return replace(NEXUS, mail_types=(*NEXUS.mail_types, MailTypeRule(**fields)))


def with_restrictions(
    *tools, scope="agent:qa_worker", modes=frozenset(), pack: Pack = NEXUS
) -> Pack:
    given = tuple(PackToolRestriction(restriction=ToolRestriction(scope, t, modes)) for t in tools)
    return replace(pack, tool_restrictions=given)


def hired(handle, role, reports_to, **fields) -> Pack:
    return replace(
        NEXUS,
        staff=(*NEXUS.staff, Staff(handle=handle, role=role, reports_to=reports_to, **fields)),
    )


def renamed_role(old, new) -> Pack:
    rename = {old: new}
    return replace(
        NEXUS,
        roles=tuple(replace(r, name=rename.get(r.name, r.name)) for r in NEXUS.roles),
        contacts=tuple(c for c in NEXUS.contacts if old not in (c.sender, c.recipient)),
    )


def without_contact(sender, recipient) -> Pack:
    kept = [c for c in NEXUS.contacts if (c.sender, c.recipient) != (sender, recipient)]
    return replace(NEXUS, contacts=tuple(kept))
