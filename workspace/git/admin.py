"""The people's pages of git: repositories with their branches, and every move of a branch."""

from __future__ import annotations

from django import forms
from django.contrib import admin
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from core.admin.acts import SEEN_IS_MISSING, Act, ActingAdmin, ActRequest, Answer, FileForm
from core.admin.base import BrowseAdmin, computed_column, listed
from core.permissions import Deed
from workspace.git.models import BranchMove, Repository
from workspace.git.pushing_back import push_back


class CommitForm(FileForm):
    """Why, and the commit that was looked at."""

    digest = forms.RegexField(
        r"^(?:[0-9a-f]{40}|[0-9a-f]{64})\Z",
        widget=forms.HiddenInput,
        error_messages=SEEN_IS_MISSING,
    )


def _commit(row: Repository) -> str:
    """The commit that the main branch is at."""
    found = row.branches.filter(name=row.main).values_list("commit", flat=True).first()
    return str(found or "")


def _push_back(call: ActRequest) -> Answer:
    commit = push_back(
        repository_id=call.row.id,
        reason=call.reason,
        caller=call.person,
        now=call.now,
        expected_commit=call.digest,
    )
    said = {"source": call.row.source, "branch": call.row.main, "commit": commit}
    return gettext("%(source)s has %(branch)s at %(commit)s.") % said


PUSH_BACK = Act(
    name="push-back",
    title=_("Push main branch back"),
    icon="publish",
    deed=Deed.PUSH_BACK,
    explanation=_(
        "The main branch, with everything that was merged into it up to the commit below, is "
        "pushed to the repository that it was imported from. Nothing there is overwritten."
    ),
    perform=_push_back,
    form=CommitForm,
    version=_commit,
    facts=lambda row: [
        (pgettext("recipient", "To"), row.source),
        (gettext("Branch"), row.main),
        (gettext("Commit"), _commit(row)),
    ],
    possible=lambda row: bool(row.source),
)


@admin.register(Repository)
class RepositoryAdmin(ActingAdmin):
    """The git repository of each organisation."""

    subject = "repository:{row.organisation.slug}"
    acts = (PUSH_BACK,)
    list_display = ("organisation", "main", "source", "created_at")
    list_select_related = ("organisation",)
    fields = ("organisation", "main", "branch_list", "source", "pushed_back", "created_at")

    branch_list = computed_column(
        _("branches"),
        lambda row: listed(f"{each.name} {each.commit}" for each in row.branches.all()[:500]),
    )


@admin.register(BranchMove)
class BranchMoveAdmin(BrowseAdmin):
    """Pushes and merges: who moved which branch from where to where."""

    list_display = ("at", "by", "kind", "branch", "new", "contract")
    list_select_related = ("contract",)
    list_filter = ("kind", "at")
    dated_by = "at"
    search_fields = ("branch", "new")
    fields = ("repository", "at", "by", "kind", "branch", "old", "new", "merged", "contract",
              "verdict")  # fmt: skip

    def subject_of(self, row: BranchMove) -> str:
        """Its event is about the contract."""
        return f"contract:{row.contract_id}" if row.contract_id else ""
