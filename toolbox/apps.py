"""The toolbox as a Django app: at start it finds every room's tools."""

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class ToolboxConfig(AppConfig):
    """The registry of tools, the gates, sessions and faces."""

    name = "toolbox"
    verbose_name = "Toolbox"

    def ready(self) -> None:
        """Load each app's tools.py and schedule.py, as Django finds admin.py."""
        from core.waiting import register_kinds
        from orgchart.explaining import decide_call
        from orgchart.services import role_changed
        from toolbox import waiting
        from toolbox.explaining import decide_for_people
        from toolbox.modes import close_modes_of_former_role
        from toolbox.registry import REGISTRY

        autodiscover_modules("tools", "schedule")
        REGISTRY.fill_catalogue()
        decide_call.join(decide_for_people)
        role_changed.join(close_modes_of_former_role)
        register_kinds(waiting.KINDS)
