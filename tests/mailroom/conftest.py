"""Mail tests share one company for each module: loading it is most of what a test would do."""

from tests.loaded import loaded, nexus

__all__ = ["loaded", "nexus"]
