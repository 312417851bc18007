"""The form of each file of a pack as a pydantic model, and what it means for the policy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, Strict, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from core.limits import MAX_REASON, MAX_SENTENCE
from orgchart.organisation_settings import SETTINGS, checked
from orgchart.packs.pack import PackToolRestriction
from orgchart.packs.permissions import Permissions
from orgchart.packs.source import Place, kind_of
from orgchart.packs.values import (
    AgentName,
    BoundTool,
    Denial,
    DeniedTool,
    Distinct,
    Form,
    Known,
    MailTypeName,
    RoleName,
    Scope,
    SenderName,
    Sentence,
    ShortText,
    Text,
    Title,
    Tool,
    name_of,
    problem,
    reference,
    refuse_each,
    skill_name,
    suggest,
)
from orgchart.policy.compiled import ContactRule, FileScopes, MailTypeRule, Role, ToolRestriction
from orgchart.policy.vocabulary import (
    BOARD,
    LOWEST_LEVEL,
    ContractScope,
    Kind,
    Office,
    Relation,
    ToolMode,
)
from orgchart.setting_parsers import BadSetting

ALL = "all"


class FilesForm(Form):
    """Paths of the company tree."""

    read: Annotated[tuple[Scope, ...], Distinct] = ()
    write: Annotated[tuple[Scope, ...], Distinct] = ()
    deny: Annotated[tuple[Denial, ...], Distinct] = ()
    contract: Annotated[ContractScope, Strict(False)] = ContractScope.NONE


class RoleForm(Form):
    """One role."""

    title: Title
    level: int = Field(ge=1, le=LOWEST_LEVEL)
    kind: Annotated[Kind, Strict(False)]
    summary: Text = ""
    tools: Annotated[tuple[BoundTool, ...], Distinct] = ()
    denied_tools: Annotated[tuple[DeniedTool, ...], Distinct] = ()
    prohibitions: Annotated[tuple[Sentence, ...], Distinct] = ()
    files: FilesForm = FilesForm()
    task_lead: bool = False
    permissions: Permissions = {}
    offices: Annotated[tuple[Annotated[Office, Strict(False)], ...], Distinct] = ()

    def role(self, name: str) -> Role:
        """The role of that name."""
        sets = {key: frozenset(getattr(self, key)) for key in ("tools", "denied_tools", "offices")}
        files = FileScopes(**dict(self.files))
        return Role(name=name, **{**dict(self), **sets, "files": files})


class RolesFile(Form):
    """roles.yaml."""

    roles: dict[Annotated[str, name_of("role")], RoleForm]


def _senders(value: Any) -> Any:
    if value is None or (isinstance(value, str) and value != ALL):
        raise problem(f"senders must be a list, this is {kind_of(value)}", f"or `{ALL}`")
    return None if value == ALL else value


class MailTypeForm(Form):
    """Who may send a type of mail at all."""

    senders: Annotated[
        Annotated[tuple[SenderName, ...], Distinct] | None,
        BeforeValidator(_senders, json_schema_input_type=Literal["all"] | list[str]),
    ]
    issued_by: Annotated[tuple[Tool, ...], Distinct] = ()
    to: Literal["superior", ""] = ""
    description: Annotated[Text, Field(max_length=MAX_SENTENCE)] = ""

    def rule(self, name: str) -> MailTypeRule:
        """The rule of the type of that name."""
        return MailTypeRule(
            name=name,
            senders=None if self.senders is None else frozenset(self.senders),
            issued_by=self.issued_by,
            to_superior=bool(self.to),
            description=self.description,
        )


class BoardContactForm(Form):
    """Which role may write to the Board, and what."""

    sender: RoleName = Field(alias="from")
    types: Annotated[tuple[MailTypeName, ...], Distinct] = ()
    needs_contract: bool = False
    relation: Annotated[Relation, Strict(False)] = Relation.ANY

    def rule(self) -> ContactRule:
        """The rule that it makes."""
        return ContactRule(
            sender=self.sender,
            recipient=getattr(self, "to", BOARD),
            types=frozenset(self.types) if "types" in self.model_fields_set else None,
            needs_contract=self.needs_contract,
            relation=self.relation,
        )


class ContactForm(BoardContactForm):
    """Which role may write to which, and what."""

    to: RoleName


def _short(value: str) -> str:
    if len(value) > 32:
        raise problem(f"{value} is longer than 32 characters", "shorten it")
    return value


class ProtocolFile(Form):
    """mail-protocol.yaml."""

    types: dict[Annotated[str, name_of("mail type"), AfterValidator(_short)], MailTypeForm]
    contacts: list[ContactForm]
    board: list[BoardContactForm] = []

    def contact_rules(self) -> dict[Place, ContactRule]:
        """Every contact rule, by its place in the file."""
        lists: dict[str, list[Any]] = {"contacts": self.contacts, "board": self.board}
        return {(key, at): form.rule() for key in lists for at, form in enumerate(lists[key])}

    @model_validator(mode="after")
    def _once(self) -> Self:
        seen: set[str] = set()
        for place, rule in self.contact_rules().items():
            if rule.label in seen:
                refuse_each([(place, problem(f"{rule.label} is there twice", "keep one of them"))])
            seen.add(rule.label)
        return self


class RestrictionForm(Form):
    """The modes that are left of a tool, for an agent, for a role or for every agent."""

    tool: DeniedTool
    agent: AgentName = ""
    role: RoleName = ""
    modes: Annotated[tuple[Annotated[ToolMode, Strict(False)], ...], Distinct]
    reason: Annotated[Text, Field(max_length=MAX_REASON)] = ""

    def restriction(self) -> PackToolRestriction:
        """The restriction that it makes."""
        scope = f"agent:{self.agent}" if self.agent else "organisation"
        scope = f"role:{self.role}" if self.role else scope
        left = ToolRestriction(scope, self.tool, frozenset(self.modes))
        return PackToolRestriction(restriction=left, reason=self.reason)

    @model_validator(mode="after")
    def _one_scope(self) -> Self:
        if self.agent and self.role:
            raise problem("names both an agent and a role", "keep one of the two")
        return self


def _alias(value: str, info: ValidationInfo[Known]) -> str:
    if value == BOARD or value in info.context.handles:
        raise problem(f"the alias {value} is a name already", "choose another alias")
    return value


def _settings(values: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    wrong: list[tuple[Place, PydanticCustomError]] = []
    for name, value in values.items():
        try:
            if name in SETTINGS:
                found |= checked({name: value})
            else:
                fix = suggest(name, SETTINGS)
                wrong.append(((name,), problem(f"there is no setting {name}", fix)))
        except BadSetting as error:
            wrong.append(((name,), problem(str(error), "correct the value")))
    refuse_each(wrong)
    return found


class OrganisationFile(Form):
    """organisation.yaml."""

    organisation: Annotated[str, name_of("organisation")]
    name: Title
    description: Text = ""
    settings: Annotated[dict[str, Any], AfterValidator(_settings)] = {}
    aliases: dict[Annotated[str, AfterValidator(_alias), name_of("alias")], AgentName] = {}
    tool_restrictions: list[RestrictionForm] = []
    tightenings: list[RestrictionForm] = []

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        if {"tightenings", "tool_restrictions"} <= self.model_fields_set:
            twice = problem("tool_restrictions are given twice", "keep one key")
            refuse_each([(("tightenings",), twice)])
        return self


class GroupFile(Form):
    """groups/<group>.yaml; `group` is the file's name, `name` a title made of it."""

    group: Annotated[str, name_of("group")] = ""
    name: Title = ""
    context: Text = ""
    member_delegation: bool = False


class AgentFile(Form):
    """agents/<handle>.yaml; what is left out: docs/packs.md."""

    role: RoleName = ""
    title: ShortText = ""
    reports_to: Annotated[str, reference("superior")] = ""
    co_managers: Annotated[tuple[Annotated[str, reference("co-manager")], ...], Distinct] = ()
    group: Annotated[str, reference("group")] = ""
    name: Annotated[str, name_of("name")] = ""
    is_leader: bool = False
    skills: Annotated[tuple[Annotated[str, AfterValidator(skill_name)], ...], Distinct] = ()
    system_prompt: Text = ""
    job_description: Text = ""
    active: bool = True

    @model_validator(mode="after")
    def _whole(self) -> Self:
        refuse_each(self._problems())
        return self

    def _problems(self) -> Iterable[tuple[Place, PydanticCustomError]]:
        if bool(self.group) != bool(self.name):
            missing = "group" if self.name else "name"
            fix = "an address is `group.name`: give both"
            yield (), problem(f"{missing} is missing", fix)
        if self.group and "is_leader" not in self.model_fields_set:
            fix = (
                "add `is_leader: true` to one agent of the group, `is_leader: false` to the others"
            )
            yield (), problem("is_leader is missing", fix)
        if self.reports_to in self.co_managers:
            what = f"{self.reports_to} is its superior already"
            yield ("co_managers",), problem(what, "name other co-managers")
        if self.is_leader and not self.active:
            what = "an agent that is not active leads no group"
            yield ("is_leader",), problem(what, "set `is_leader: false`")


FILES: tuple[type[Form], ...] = (OrganisationFile, RolesFile, ProtocolFile, GroupFile, AgentFile)
