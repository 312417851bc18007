"""The lab as a Django app: its commands."""

from django.apps import AppConfig


class LabConfig(AppConfig):
    """Bench, demo and simulation."""

    name = "lab"
    verbose_name = "Lab"
