"""The humans' face of skills: the exact file to read, and the Board's approval of it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import BooleanRadioFilter

from ledger.browsing import MomentFilter
from orgchart.admin_acts import Act, ActingAdmin, Answer, Call, FileForm
from orgchart.admin_base import block, chips, column, listed
from workspace.models import Skill
from workspace.skills import folders
from workspace.skills.services import approve, scan, withdraw

RIGHT = "workspace.approve_skill"


def _approve(call: Call) -> Answer:
    approve(
        name=call.row.name,
        digest=call.digest,
        reason=call.reason,
        caller=call.person,
        now=call.now,
    )
    return f"{call.row.name} is approved as it was read: its commands may run."


def _withdraw(call: Call) -> Answer:
    withdraw(name=call.row.name, reason=call.reason, caller=call.person, now=call.now)
    return f"The approval of {call.row.name} is withdrawn."


def _look(call: Call) -> Answer:
    seen = scan(caller=call.person, now=call.now)
    return f"The folders were looked into: {len(seen)} skills are known."


def _moved(row: Skill) -> bool:
    """Whether the file is no longer what the page shows of it."""
    on_disk = folders.read(row.name)
    if on_disk is None:
        return row.installed
    return not row.installed or on_disk.digest != row.digest


LOOK = Act(
    name="look-again",
    title="Look again",
    icon="refresh",
    permission=RIGHT,
    explanation=(
        "The skill folders are read again, so that this page shows the files as they are now. "
        "Nothing is approved by it."
    ),
    perform=_look,
    form=forms.Form,
    possible=_moved,
)
APPROVE = Act(
    name="approve",
    title="Approve this file",
    icon="verified",
    permission=RIGHT,
    explanation=(
        "The commands in this very file may run in the sandbox of whoever uses the skill. Read it "
        "whole: a changed file needs a new approval."
    ),
    perform=_approve,
    form=FileForm,
    version=lambda row: str(row.digest),
    text=lambda row: str(row.text),
    facts=lambda row: [("SHA-256", row.digest), *(("Runs", c) for c in row.commands)],
    possible=lambda row: bool(
        row.installed and row.digest and not row.problem and not row.approved
    ),
)
WITHDRAW = Act(
    name="withdraw",
    title="Withdraw the approval",
    icon="block",
    danger=True,
    permission=RIGHT,
    explanation="Its commands run for nobody from the next use on.",
    perform=_withdraw,
    possible=lambda row: row.approved_at is not None,
)


@admin.register(Skill)
class SkillAdmin(ActingAdmin):
    """Skills of this installation as they were last seen, and which exact files were approved."""

    acts = (LOOK, APPROVE, WITHDRAW)
    list_display = ("name", "description", "state", "command_count", "approved_by", "seen_at")
    list_filter = (("installed", BooleanRadioFilter), ("seen_at", MomentFilter))
    search_fields = ("name",)
    ordering = ("name",)
    fields = (
        "name",
        "description",
        "state",
        "on_disk",
        "path",
        "file",
        "runs",
        "tools",
        "digest",
        "approved_digest",
        "approved_by",
        "approved_at",
        "approval_reason",
        "problem",
        "seen_at",
    )
    readonly_fields = fields

    def subject_of(self, row: Skill) -> str:
        """How the ledger names it."""
        return f"skill:{row.name}"

    def organisation_id_of(self, row: Any) -> int:
        """Skills belong to the installation, not to one organisation."""
        return 0

    @column(
        "state",
        label={
            "approved": "success",
            "changed": "danger",
            "not approved": "warning",
            "gone": "default",
        },
    )
    def state(self, row: Skill) -> str:
        """Whether its commands may run, by the file as it is at this moment, in colour."""
        on_disk = folders.read(row.name)
        if on_disk is None:
            return "gone"
        if on_disk.digest and on_disk.digest == row.approved_digest:
            return "approved"
        return "changed" if row.approved_digest else "not approved"

    @column("on disk")
    def on_disk(self, row: Skill) -> str:
        """Whether what the page shows is what there is."""
        if not _moved(row):
            return "as shown here"
        return "The file is another one than is shown here. Look again, then read it."

    @column("commands")
    def command_count(self, row: Skill) -> int:
        """How many lines of it would run."""
        return len(row.commands)

    @column("file")
    def file(self, row: Skill) -> SafeString:
        """The file as it was last seen."""
        return block(row.text)

    @column("runs")
    def runs(self, row: Skill) -> SafeString:
        """Its command lines."""
        return listed(row.commands)

    @column("allowed tools")
    def tools(self, row: Skill) -> SafeString:
        """What its frame may use."""
        return chips(row.allowed_tools)
