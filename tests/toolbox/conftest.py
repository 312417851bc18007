"""Fixtures of the room; a module that needs no server loads a company of its own."""

from tests.committed import company, url

__all__ = ["company", "url"]
