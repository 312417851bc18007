"""The shipped packs as plain data, read without the loader that they are to test."""

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from orgchart.policy.building import build_policy
from orgchart.policy.compiled import Agent, ContactRule, FileScopes, MailTypeRule, Policy, Role
from orgchart.policy.vocabulary import ContractScope, Kind, Relation, ToolMode
from tests.oracle import org

PACKS = Path(__file__).parents[2] / "packs"
ORGANISATIONS = ("nexus", "dev-team", "soloqueue", "constitution")


def read(organisation: str, name: str) -> Any:
    return deepcopy(_parsed(PACKS / organisation / name))


@cache
def _parsed(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def roles(organisation: str) -> dict[str, Any]:
    return read(organisation, "roles.yaml")["roles"]


def agents(organisation: str) -> dict[str, Any]:
    folder = PACKS / organisation / "agents"
    return {f.stem: read(organisation, f"agents/{f.name}") for f in sorted(folder.glob("*.yaml"))}


def role_of(name: str, row: dict[str, Any]) -> Role:
    paths = row["files"]
    return Role(
        name=name,
        title=row["title"],
        level=row["level"],
        kind=Kind(row["kind"]),
        tools=frozenset(row["tools"]),
        files=FileScopes(
            tuple(paths["read"]),
            tuple(paths["write"]),
            tuple(paths["deny"]),
            contract=ContractScope(paths["contract"]),
        ),
    )


def _contact(row: dict[str, Any]) -> ContactRule:
    return ContactRule(
        sender=row["from"],
        recipient=row.get("to", org.BOARD),
        types=frozenset(row["types"]) if "types" in row else None,
        needs_contract=row.get("needs_contract", False),
        relation=Relation(row.get("relation", "any")),
    )


def compiled_nexus() -> Policy:
    """The NEXUS pack as a Policy, without the loader and without a database."""
    protocol = read("nexus", "mail-protocol.yaml")
    everybody = agents("nexus").items()
    return build_policy(
        organisation_id=1,
        organisation="nexus",
        version=1,
        roles=[role_of(name, row) for name, row in roles("nexus").items()],
        agents=[
            Agent(
                id=number,
                handle=handle,
                role=row["role"],
                title=row["title"],
                managers=(row["reports_to"], *row.get("co_managers", ())),
            )
            for number, (handle, row) in enumerate(everybody, 1)
        ],
        groups=[],
        mail_types=[
            MailTypeRule(
                name=name,
                senders=None if row["senders"] == "all" else frozenset(row["senders"]),
                issued_by=tuple(row.get("issued_by", ())),
                to_superior=row.get("to") == "superior",
            )
            for name, row in protocol["types"].items()
        ],
        contacts=[_contact(row) for row in protocol["contacts"] + protocol["board"]],
        aliases=read("nexus", "organisation.yaml")["aliases"],
        settings={},
        enabled_modes=frozenset(ToolMode),
    )
