"""Who sends a request, as far as its headers tell before it is read."""

from __future__ import annotations

from collections.abc import Hashable

from core.database import give_back_connection
from nexus_site.console import known_browsers
from nexus_site.serving.protocol import Headers
from toolbox.authentication import meet_owner, owner_of_key


def agent_of(headers: Headers) -> tuple[int, int] | None:
    """The agent and organisation that this process last saw the key prove."""
    return owner_of_key(dict(headers).get(b"authorization", b"").decode("latin-1"))


def meet_agent(headers: Headers) -> None:
    """Find out whose key it is, of which this process knows nothing yet."""
    try:
        meet_owner(dict(headers).get(b"authorization", b"").decode("latin-1"))
    finally:
        give_back_connection()


def person_of(headers: Headers) -> str:
    """Who signed in in the browser that asks; empty where no person did (Spec: people 54)."""
    cookies = b"; ".join(value for name, value in headers if name == b"cookie")
    return known_browsers.owner_of(cookies.decode("latin-1"))


def owner_of(headers: Headers) -> Hashable:
    """The organisation of an agent, or the name of a person; '' for all others together."""
    agent = agent_of(headers)
    return agent[1] if agent else person_of(headers)
