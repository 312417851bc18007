"""What people read for what a person did to something that runs: `action_taken`; pure."""

from __future__ import annotations

from collections.abc import Mapping

from core.language import gettext_noop as _
from core.permissions import Deed

DONE: Mapping[str, str] = {
    **{codename: deed.value.title for deed in Deed for codename in deed.value.codenames[:1]},
    "add_note": Deed.ADD_NOTE.value.title,
    "amend_analysis": _("Amend ANALYSIS"),
    "amend_tasks": _("Amend TASKS"),
    "close_contract_cancelled": Deed.CANCEL_CONTRACT.value.title,
    "close_contract_failed": _("Close contract as failed"),
    "close_contract_passed": _("Close contract as passed"),
    "close_contract_rework": _("Send work back"),
    "close_mode": _("Close coding mode"),
    "correct_memory": _("Correct memory"),
    "deactivate_agent": _("Deactivate agent"),
    "extend_rounds": Deed.EXTEND_CASE.value.title,
    "move_task_completed": _("Complete task"),
    "move_task_deleted": _("Delete task"),
    "move_task_in_progress": _("Start task"),
    "move_task_pending": _("Put task back"),
    "open_mode": _("Open coding mode"),
    "pause_agent": _("Pause agent"),
    "resume_agent": _("Resume agent"),
    "resume_everything": _("Resume everything"),
    "revoke_key": Deed.REVOKE_KEY.value.title,
    "stop_everything": _("Stop everything"),
    "withdraw_memory": _("Withdraw memory"),
    "withdraw_skill_approval": _("Withdraw approval of skill"),
}
"""The title of the deed, and words of its own for what is only a part of one."""
