"""Asking the search provider of this installation: SearXNG's JSON, or Brave's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import httpx
from django.conf import settings

from core.decision import Code, listed, refuse
from core.outgoing import close_after, trusted
from toolbox.caller import Caller
from toolbox.quoting import one_line
from workspace.services import unavailable
from workspace.web.fetching import BadPage, unpacked

LONGEST = 10.0  # seconds
DRIVER = "search provider"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One page that was found."""

    title: str
    url: str
    snippet: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """How one kind of provider is asked, and where its answer has the hits."""

    path: str
    question: Callable[[str, int], dict[str, str]]
    headers: Callable[[str], dict[str, str]]
    hits: Callable[[Any], Any]
    snippet: str


def _searxng(query: str, limit: int) -> dict[str, str]:
    return {"q": query, "format": "json"}


def _hits_of_searxng(answer: Any) -> Any:
    """Raises Denied where there are none and engines were silent: it answers both alike."""
    silent = answer.get("unresponsive_engines", [])
    if silent and not answer["results"]:
        names = listed([one_line(str(name))[:40] for name, *_ in silent], most=5)
        _fail(f"found nothing, and engines that it asks did not answer: {names}")
    return answer["results"]


def _brave(query: str, limit: int) -> dict[str, str]:
    return {"q": query, "count": str(min(limit, 20)), "text_decorations": "false"}


PROVIDERS: Mapping[str, Provider] = {
    "searxng": Provider(
        path="/search",
        question=_searxng,
        headers=lambda key: {"Authorization": f"Bearer {key}"} if key else {},
        hits=_hits_of_searxng,
        snippet="content",
    ),
    "brave": Provider(
        path="/res/v1/web/search",
        question=_brave,
        headers=lambda key: {"X-Subscription-Token": key},
        hits=lambda answer: answer.get("web", {}).get("results", []),
        snippet="description",
    ),
}


def require_provider(caller: Caller) -> None:
    """Raise Denied DRIVER_UNAVAILABLE where this installation has no provider."""
    if not settings.WEB_SEARCH_URL:
        unavailable(caller, DRIVER)


def search(query: str, limit: int) -> list[Hit]:
    """The provider's first hits. The operator's own address is called, inside or outside.

    Raises Denied DRIVER_UNAVAILABLE where it does not answer in time.
    """
    kind, _, address = settings.WEB_SEARCH_URL.partition("+")
    provider = PROVIDERS[kind]
    try:
        rows = provider.hits(_ask(provider, address, query, limit))
        return [_hit(row, provider.snippet) for row in rows[:limit]]
    except (httpx.HTTPError, OSError, BadPage) as problem:
        _fail(f"did not answer ({type(problem).__name__}: {one_line(str(problem))[:100]})")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        _fail("answered something that is no list of results")


def _ask(provider: Provider, address: str, query: str, limit: int) -> Any:
    headers = {"Accept": "application/json", "Accept-Encoding": "gzip"}
    with (
        close_after(LONGEST) as trace,
        httpx.Client(timeout=LONGEST, trust_env=False, verify=trusted()) as client,
        client.stream(
            "GET",
            address.rstrip("/") + provider.path,
            params=provider.question(query, limit),
            headers=headers | provider.headers(settings.WEB_SEARCH_KEY),
            extensions={"trace": trace},
        ) as response,
    ):
        if response.status_code != 200:
            raise BadPage(f"status {response.status_code}")
        coding = response.headers.get("Content-Encoding", "").strip().lower()
        body, cut = unpacked(response.iter_raw(), coding)
    if cut:
        raise BadPage("the answer is too large, or breaks off")
    return httpx.Response(200, content=body).json()


def _hit(row: Any, snippet: str) -> Hit:
    return Hit(
        title=_text(row.get("title"), 300),
        url=_text(row["url"], 2000),
        snippet=_text(row.get(snippet), 1000),
    )


def _text(value: Any, most: int) -> str:
    return value[:most] if isinstance(value, str) else ""


def _fail(problem: str) -> NoReturn:
    raise refuse(
        Code.DRIVER_UNAVAILABLE,
        f"the {DRIVER} {problem}",
        "try again later",
        rule="a search provider answers (spec: hands 14)",
        driver=DRIVER,
    )
