"""What people read for the code of a refusal; pure.

A refusal's own sentence is kept in the ledger and sent to agents, so it stays English (Spec: people
46). `core.admin.sentences` says it in the language of a page.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.decision import Code
from core.language import gettext_noop as _

MEANINGS: Mapping[str, str] = {
    Code.INVALID_PARAMS: _("Something in the call is missing or wrong"),
    Code.UNAUTHENTICATED: _("No valid key"),
    Code.TOOL_NOT_BOUND: _("The role does not have this tool"),
    Code.TOOL_DENIED: _("This tool is forbidden here"),
    Code.MODE_DENIED: _("Not allowed in this mode"),
    Code.CONTACT_DENIED: _("May not contact this recipient"),
    Code.MAIL_TYPE_DENIED: _("May not send this type of mail"),
    Code.CONTRACT_REQUIRED: _("Allowed only under a contract"),
    Code.RECIPIENT_UNKNOWN: _("No such recipient"),
    Code.RECIPIENT_INACTIVE: _("The recipient is deactivated"),
    Code.LEVEL_DENIED: _("Not allowed at this level"),
    Code.AGENT_INACTIVE: _("The agent is deactivated"),
    Code.AGENT_PAUSED: _("The agent is paused"),
    Code.SCOPE_DENIED: _("These files are outside the agent's scope"),
    Code.BRANCH_DENIED: _("Not allowed on this branch"),
    Code.APPROVAL_REQUIRED: _("Needs an approval first"),
    Code.AUTHORISATION_REQUIRED: _("Needs an authorisation by a contract"),
    Code.FORCE_ASSIGN_DENIED: _("May not assign work to this agent"),
    Code.ROLE_MISMATCH: _("Needs another role"),
    Code.STAGE_DENIED: _("Not allowed at this stage of the case"),
    Code.INPUT_DENIED: _("May not read this input of the case"),
    Code.NOT_YOURS: _("Others decide this"),
    Code.UNKNOWN_TOOL: _("No such tool"),
    Code.NOT_FOUND: _("Not found"),
    Code.METHOD_NOT_ALLOWED: _("This address does not take such a request"),
    Code.VERSION_MISMATCH: _("Changed by someone else in the meantime"),
    Code.INVALID_TRANSITION: _("Not possible in its present state"),
    Code.TASK_BLOCKED: _("Another task has to be completed first"),
    Code.DELEGATION_CIRCLE: _("Would delegate the work in a circle"),
    Code.IDEMPOTENCY_MISMATCH: _("This repetition differs from the first call"),
    Code.TOO_LARGE: _("Too large"),
    Code.RATE_LIMITED: _("Too many calls in a short time"),
    Code.QUOTA_EXCEEDED: _("A quota is used up"),
    Code.ISOLATION_UNAVAILABLE: _("Programs cannot be isolated here"),
    Code.STORAGE_FULL: _("The disk is almost full"),
    Code.DATABASE_UNAVAILABLE: _("The database was interrupted"),
    Code.SERVER_STOPPING: _("The server was stopped"),
    Code.DRIVER_UNAVAILABLE: _("A service that this needs is not connected"),
    Code.INTERNAL: _("An error of the system"),
}
