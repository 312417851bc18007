"""What a change of an organisation's settings means for its repository (Spec: hands 22)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from core.actors import Actor
from orgchart.models import Organisation
from workspace.git.repositories import changed_source, replaceable


@contextmanager
def follow_settings(
    organisation: Organisation, values: Mapping[str, Any], caller: Actor, now: datetime
) -> Iterator[Callable[[], None]]:
    """Import the repository that the setting names; if that fails, the setting does not change."""
    if "repository" not in values:
        yield lambda: None
        return
    with changed_source(
        organisation=organisation, source=values["repository"], caller=caller, now=now
    ) as record_it:
        yield record_it


def preview_settings(organisation: Organisation, values: Mapping[str, Any]) -> None:
    """Refuse a repository that agents pushed to before anything is imported. Raises Denied."""
    if "repository" in values:
        replaceable(organisation, values["repository"])
