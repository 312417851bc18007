"""The tasks room as a Django app."""

from django.apps import AppConfig

from orgchart import catalogue
from tasks.vocabulary import TaskType


class TasksConfig(AppConfig):
    """Tasks, dependencies, claims."""

    name = "tasks"
    verbose_name = "Tasks"

    def ready(self) -> None:
        """Declare the task types that packs may name; follow changes of roles."""
        from orgchart.services import roles_changed
        from tasks.replaced_writers import notify_superiors

        catalogue.declare_task_types(str(kind) for kind in TaskType)
        roles_changed.join(notify_superiors)
