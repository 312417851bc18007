"""Closed sets of the organisation: kinds, modes, tool groups, offices, permissions."""

from enum import StrEnum


class Kind(StrEnum):
    """What a role is for (Spec: organisation 4)."""

    EXECUTIVE = "executive"
    MANAGER = "manager"
    WORKER = "worker"


KINDS = frozenset(kind.value for kind in Kind)
"""Names that mean every role of a kind among a mail type's senders; no role has one of them."""


class ToolMode(StrEnum):
    """Modes of a session (Spec: modes 1)."""

    CHAT_SAFE = "chat_safe"
    CODING = "coding"


class ToolGroup(StrEnum):
    """For display and audit only, never for authorisation (Spec: tools 13)."""

    CODE = "code"
    MEMORY = "memory"
    WORLD = "world"
    MAIL = "mail"
    CONTRACT = "contract"
    DOCUMENT = "document"
    ORGANISATION = "organisation"
    TASK = "task"
    DELEGATION = "delegation"
    GOVERNANCE = "governance"


class Relation(StrEnum):
    """Between which agents of two roles a contact rule holds."""

    ANY = "any"
    OWN = "own"


class Office(StrEnum):
    """Constitutional offices (Spec: constitution 2)."""

    ANALYST = "ANALYST"
    PLANNER = "PLANNER"
    IMPLEMENTER = "IMPLEMENTER"
    REVIEWER = "REVIEWER"
    TESTER = "TESTER"
    CONDUCTOR = "CONDUCTOR"


class ContractScope(StrEnum):
    """What an active contract's workspace_scope adds to a role's file scope."""

    NONE = "none"
    READ = "read"
    WRITE = "write"


class Access(StrEnum):
    """Which way a path is touched."""

    READ = "read"
    WRITE = "write"


BOARD = "board"
"""The humans at level 0. Not an agent; a name that no agent may take."""

ESCALATION = "escalation"
"""The mail type that goes to the direct superior, and waits for an answer (Spec: escalation 1)."""

LOWEST_LEVEL = 9
"""Of a role; the highest is 1, and the Board is 0."""

RESERVED = frozenset({BOARD, "system", "human", "agent"})
"""Names that mean another actor in mails and in the ledger."""

HANDLE_FORM = r"^[a-z][a-z0-9_.-]{0,63}\Z"
"""How every name of the organisation is written: ASCII, so that no look-alike letter passes."""

HANDLE_MEANT = (
    "use lower-case letters, digits, '_', '-' and '.', starting with a letter, 64 at most"
)

SKILL_FORM = r"^[a-z0-9][a-z0-9_.-]{0,63}\Z"
"""How a skill that an agent lists is written. Every folder's name is so, such as `3d`."""

SKILL_MEANT = (
    "use lower-case letters, digits, '_', '-' and '.', starting with a letter or digit, 64 at most"
)


class Permission(StrEnum):
    """What a role's `permissions` may list (Spec: tasks 40)."""

    CLAIM_TASK_TYPE = "claim_task_type"
    UPDATE_OWN_TASKS = "update_own_tasks"
    COMMENT_ON_ALL_TASKS = "comment_on_all_tasks"


class Visibility(StrEnum):
    """Whose tasks and comments an agent reads (Spec: tasks 33)."""

    CONTACTS = "contacts"
    ALL = "all"
