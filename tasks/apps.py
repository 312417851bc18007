"""The tasks room as a Django app."""

from django.apps import AppConfig

from orgchart import catalogue
from tasks.vocabulary import TaskType


class TasksConfig(AppConfig):
    """Tasks, dependencies, claims."""

    name = "tasks"
    verbose_name = "Tasks"

    def ready(self) -> None:
        """Declare the task types that packs may name."""
        catalogue.declare_task_types(str(kind) for kind in TaskType)
