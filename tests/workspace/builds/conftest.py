"""Fixtures of builds."""

from tests.workspace.builds.world import devops, engine, nexus

__all__ = ["devops", "engine", "nexus"]
