"""`manage.py states`: write docs/states.md and the tables of docs/constitution.md."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from core.machines import diagram, machine_fields
from governance.cases.printed_tables import with_tables

PAGE = settings.BASE_DIR / "docs" / "states.md"
CONSTITUTION = settings.BASE_DIR / "docs" / "constitution.md"
HEAD = """# State machines

Written by `python manage.py states` from the machines in each room's `vocabulary.py`; a test
compares the two. A label names the transition's method and who takes it.
"""


def states_page() -> str:
    """The page: one diagram for each machine that a model's field is built from."""
    parts = [HEAD]
    for each in machine_fields():
        field = f"`{each.model._meta.label}.{each.name}`"  # noqa: SLF001  Django's public name
        parts.append(
            f"## {each.machine.name}\n{field}\n\n```mermaid\n{diagram(each.machine)}\n```\n"
        )
    return "\n".join(parts)


class Command(BaseCommand):
    """Write the page of state diagrams."""

    help = __doc__ or ""

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the page."""
        PAGE.write_text(states_page(), "utf-8")
        CONSTITUTION.write_text(with_tables(CONSTITUTION.read_text("utf-8")), "utf-8")
