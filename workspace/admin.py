"""The humans' face of skills: the exact file to read, and the Board's approval of it."""

from __future__ import annotations

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.admin.actors import actor_name
from core.admin.acts import SEEN_IS_MISSING, Act, ActingAdmin, ActRequest, Answer, FileForm
from core.admin.base import (
    actor_column,
    block,
    chips,
    column,
    computed_column,
    listed,
    shown_column,
)
from core.admin.browsing import ListButton
from core.admin.contexts import admin_context
from core.database import database_now
from core.people import person, signed_in
from core.permissions import Deed
from workspace.builds import admin as builds_admin  # noqa: F401  registers its pages
from workspace.git import admin as git_admin  # noqa: F401  registers its pages
from workspace.models import Skill
from workspace.runs import admin as runs_admin  # noqa: F401  registers its pages
from workspace.skills import folders
from workspace.skills.services import approve, scan, withdraw
from workspace.skills.warnings import doubts_about


class SkillApprovalForm(FileForm):
    """Why, the SHA-256 of the file that was read, and the skill's version at that time."""

    version = forms.IntegerField(  # type: ignore[assignment]  # FileForm has none
        widget=forms.HiddenInput, error_messages=SEEN_IS_MISSING
    )


def _approve(call: ActRequest) -> Answer:
    approve(
        name=call.row.name,
        digest=call.digest,
        reason=call.reason,
        caller=call.person,
        now=call.now,
        expected_version=call.version,
    )
    return gettext("%(skill)s is approved as it was read: its commands may run.") % {
        "skill": call.row.name
    }


def _withdraw(call: ActRequest) -> Answer:
    withdraw(
        name=call.row.name,
        reason=call.reason,
        caller=call.person,
        now=call.now,
        expected_version=call.version,
    )
    return gettext("The approval of %(skill)s is withdrawn.") % {"skill": call.row.name}


def _look(call: ActRequest) -> Answer:
    found = scan(caller=call.person, now=call.now)
    return gettext("The folders were looked into. Skills known: %(count)s.") % {"count": len(found)}


def _moved(row: Skill) -> bool:
    """Whether the file is no longer what the page shows of it."""
    on_disk = folders.read(row.name)
    if on_disk is None:
        return row.installed
    return not row.installed or on_disk.digest != row.digest


LOOK = Act(
    name="look-again",
    title=_("Read the folders again"),
    icon="refresh",
    deed=Deed.READ_SKILLS,
    explanation=_(
        "The skill folders are read again, so that this page shows the files as they are now. "
        "Nothing is approved by it."
    ),
    perform=_look,
    form=forms.Form,
    possible=_moved,
)
APPROVE = Act(
    name="approve",
    title=_("Approve this file"),
    icon="verified",
    deed=Deed.APPROVE_SKILL,
    explanation=_(
        "The commands in this file may run in the sandbox of each agent that uses the skill. "
        "Read all of it: a changed file needs a new approval."
    ),
    perform=_approve,
    form=SkillApprovalForm,
    version=lambda row: str(row.digest),
    initial=lambda row: {"version": row.version},
    text=lambda row: str(row.text),
    facts=lambda row: [
        ("SHA-256", row.digest),
        *((gettext("Runs the command"), command) for command in row.commands),
        *((gettext("No effect"), message) for message, _fix in doubts_about(row.name)),
    ],
    possible=lambda row: bool(
        row.installed and row.digest and not row.problem and not row.approved
    ),
)
WITHDRAW = Act(
    name="withdraw",
    title=_("Withdraw the approval"),
    icon="block",
    danger=True,
    deed=Deed.APPROVE_SKILL,
    explanation=_("From the next use on, no agent can start it, until a person approves it again."),
    perform=_withdraw,
    version=lambda row: int(row.version),
    facts=lambda row: [
        ("SHA-256", row.approved_digest),
        (gettext("Approved by"), actor_name(row.approved_by)),
        (gettext("Reason"), row.approval_reason),
    ],
    possible=lambda row: row.approved_at is not None,
)


def _may_look(request: HttpRequest) -> bool:
    return request.user.has_perm(LOOK.permission) and signed_in(request).is_member_of(0)


@admin.register(Skill)
class SkillAdmin(ActingAdmin):
    """Skills as they were last seen, and which exact files were approved.

    Every organisation uses the same files, so members of every organisation approve them.
    """

    subject = "skill:{row.name}"
    acts = (LOOK, APPROVE, WITHDRAW)
    organisation_path = None
    list_buttons = (
        ListButton(
            title=LOOK.title,
            icon=LOOK.icon,
            page="workspace_skill_look",
            is_primary=False,
            may=_may_look,
        ),
    )
    list_display = ("name", "description", "state", "command_count", "approver", "seen_at")
    list_filter = ("installed", "seen_at")
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
        "approver",
        "approved_at",
        "approval_reason",
        "problem",
        "seen_at",
    )
    in_other_words = ("approved_by",)
    approver = actor_column("approved_by", _("approved by"))

    def look_view(self, request: HttpRequest) -> HttpResponse:
        """Ask; on POST read the skill folders again. A skill that was never read has no page."""
        if not _may_look(request):
            raise PermissionDenied(LOOK.permission)
        back = reverse("admin:workspace_skill_changelist")
        if request.method == "POST":
            now = database_now()
            said = _look(ActRequest(row=None, person=person(request, 0), data={}, now=now))
            self.message_user(request, str(said), messages.SUCCESS)
            return HttpResponseRedirect(back)
        context = admin_context(
            self,
            request,
            LOOK.title,
            act=LOOK,
            form=LOOK.form(),
            media=self.media,
            possible=True,
            back=back,
        )
        return TemplateResponse(request, "admin/nexus/act.html", context)

    own_pages = (("look-again/", "workspace_skill_look", look_view),)

    @column(
        _("state"),
        label={
            "approved": "success",
            "changed": "danger",
            "not approved": "warning",
            "gone": "default",
        },
    )
    def state(self, row: Skill) -> tuple[str, str]:
        """Whether its commands may run, by the file as it is at this moment, in colour."""
        on_disk = folders.read(row.name)
        if on_disk is None:
            return "gone", gettext("gone")
        if on_disk.digest and on_disk.digest == row.approved_digest:
            return "approved", gettext("approved")
        if row.approved_digest:
            return "changed", gettext("changed")
        return "not approved", gettext("not approved")

    @column(_("on disk"))
    def on_disk(self, row: Skill) -> str:
        """Whether what the page shows is what there is."""
        if not _moved(row):
            return gettext("as shown here")
        return gettext("The file is another one than is shown here. Look again, then read it.")

    command_count = computed_column(_("commands"), lambda row: len(row.commands))

    file = shown_column("text", _("file"), block)
    runs = shown_column("commands", _("runs"), listed)
    tools = shown_column("allowed_tools", _("allowed tools"), chips)
