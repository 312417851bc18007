"""The tasks room as a Django app."""

from django.apps import AppConfig


class TasksConfig(AppConfig):
    """Tasks, dependencies, claims."""

    name = "tasks"
    verbose_name = "Tasks"
    default_auto_field = "django.db.models.BigAutoField"
