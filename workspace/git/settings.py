"""What a change of an organisation's settings means for its repository (Spec: hands 22)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from core.actors import Actor
from core.database import needs_transaction
from orgchart.models import Organisation
from workspace.git.repositories import change_source


@needs_transaction
def follow_settings(
    organisation: Organisation, values: Mapping[str, Any], caller: Actor, now: datetime
) -> None:
    """Import the repository that the setting names; if that fails, the setting does not change."""
    if "repository" in values:
        change_source(
            organisation=organisation, source=values["repository"], caller=caller, now=now
        )
