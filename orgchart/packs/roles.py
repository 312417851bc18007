"""Reading roles.yaml."""

from __future__ import annotations

from collections.abc import Callable

from orgchart import catalogue
from orgchart.catalogue import Source
from orgchart.packs.fields import Section, suggest
from orgchart.packs.permissions import read_permissions
from orgchart.policy.compiled import FileScopes, Role
from orgchart.policy.paths import problem_of_deny, problem_of_scope
from orgchart.policy.violation import Subject
from orgchart.policy.vocabulary import BOARD, ContractScope, Kind, Office

Remember = Callable[[Subject, str, Section], None]

KEYS = (
    "title",
    "level",
    "kind",
    "summary",
    "tools",
    "denied_tools",
    "prohibitions",
    "files",
    "task_lead",
    "permissions",
    "offices",
)


def read_roles(file: Section, remember: Remember) -> tuple[Role, ...]:
    """Every role of the file."""
    file.allow("roles", required=("roles",))
    roles = file.section("roles")
    found = []
    if roles is None:
        return ()
    for name in roles:
        section = roles.section(name)
        if section is None:
            continue
        section.line = roles.line_of(name)
        if name == BOARD:
            section.note(section.line, f"`{BOARD}` names the humans", "choose another name")
        elif section.is_name(name, section.line, None, "role"):
            remember(Subject.ROLE, name, section)
            found.append(_role(name, section))
    return tuple(found)


def _role(name: str, section: Section) -> Role:
    section.allow(*KEYS, required=("title", "level", "kind"))
    return Role(
        name=name,
        title=section.text("title", longest=200, empty=False),
        level=section.number("level", low=1, high=9),
        kind=section.choice("kind", Kind, Kind.WORKER),
        tools=frozenset(_tools(section)),
        denied_tools=frozenset(_denied(section)),
        summary=section.text("summary"),
        prohibitions=section.texts("prohibitions", longest=1000),
        files=_files(section),
        task_lead=section.flag("task_lead"),
        permissions=read_permissions(section),
        offices=frozenset(
            Office(office)
            for office in section.names(
                "offices", known=[office.value for office in Office], what="office"
            )
        ),
    )


def _tools(section: Section) -> tuple[str, ...]:
    known = catalogue.known()
    if not known:
        return section.names("tools")
    found = []
    for line, tool in section.items("tools", longest=64):
        entry = known.get(tool)
        if entry is None:
            section.note(line, f"there is no tool {tool}", suggest(tool, catalogue.bindable()))
        elif entry.source is not Source.ROLE:
            section.note(line, f"{tool} comes by itself ({entry.source})", "take it out")
        else:
            found.append(tool)
    return tuple(found)


def _denied(section: Section) -> tuple[str, ...]:
    return section.names("denied_tools", known=frozenset(catalogue.known()) or None, what="tool")


def _files(section: Section) -> FileScopes:
    files = section.section("files")
    if files is None:
        return FileScopes()
    files.allow("read", "write", "deny", "contract")
    return FileScopes(
        read=_paths(files, "read", problem_of_scope),
        write=_paths(files, "write", problem_of_scope),
        deny=_paths(files, "deny", problem_of_deny),
        contract=files.choice("contract", ContractScope, ContractScope.NONE),
    )


def _paths(files: Section, key: str, problem_of: Callable[[str], str]) -> tuple[str, ...]:
    found = []
    for line, path in files.items(key, longest=200):
        problem = problem_of(path)
        if problem:
            files.note(
                line,
                f"the path {path!r} is none: {problem}",
                "write it relative to the company tree; '/' ends a folder",
            )
        else:
            found.append(path)
    return tuple(found)
