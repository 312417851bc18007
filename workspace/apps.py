"""The workspace room as a Django app."""

from django.apps import AppConfig


class WorkspaceConfig(AppConfig):
    """Hands: files, git, tests, builds, web."""

    name = "workspace"
    verbose_name = "Workspace"

    def ready(self) -> None:
        """Join the hooks of lower rooms: doubts about skills, commits of contracts, settings."""
        from contracts import evidence
        from core.waiting import register_kinds
        from orgchart.packs.checking import doubts_about_skill
        from orgchart.services import settings_changing, settings_previewed
        from workspace.builds import waiting as builds_waiting
        from workspace.git.evidence import branches_in_the_way, commit_of_contract
        from workspace.git.judged_commit import last_run
        from workspace.git.settings import follow_settings, preview_settings
        from workspace.skills import waiting
        from workspace.skills.warnings import doubts_about

        doubts_about_skill.join(doubts_about)
        evidence.commits.join(commit_of_contract)
        evidence.runs.join(last_run)
        evidence.branches.join(branches_in_the_way)
        settings_changing.join(follow_settings)
        settings_previewed.join(preview_settings)
        register_kinds((*waiting.KINDS, *builds_waiting.KINDS))
