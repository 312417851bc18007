"""Parameters that several of the workspace's tools have."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from core.params import Params, Path

Paths = Annotated[list[Path], Field(min_length=1, max_length=200)]
Text = Annotated[str, StringConstraints(max_length=900_000)]


class OnePath(Params):
    """One file of the company tree."""

    path: Path = Field(description="path in the company tree, such as src/api/app.py")


class PathAndContent(OnePath):
    """One file and what it is to hold."""

    content: Text


class SomePaths(Params):
    """Files or folders of the company tree."""

    paths: Paths
