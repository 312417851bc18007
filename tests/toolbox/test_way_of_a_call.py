"""The functions of ours that a call passes from first to commit, as `docs/call.md` lists them."""

import asyncio
import json
import re
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from core.database import database_now
from nexus_site.asgi import Site
from tests.company import Company, load_company

ROOT = Path(__file__).parents[2]
LISTED = (ROOT / "docs/call.md").read_text("utf-8")
ELSEWHERE = (".venv/", "var/", "tests/", "nexus_site/run/")
"""Not the product's, or the database's own start."""
PURE = ("core/", "orgchart/policy/", "toolbox/registry.py", "ledger/canonical.py")
DECISIONS = ("/rules.py", "/rules/", "/terms.py")
"""A call asks pure decisions and values; it does not pass through them."""
EFFECTS = ("core/database.py", "core/machines.py")
"""In `core`, but not pure: a call passes through them."""
INNER = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>")
"""Parts of the function that they are written in."""
MAIL = {"to": "it_manager", "type": "info", "subject": "Hello", "body": "A word."}


def is_step(place: str, name: str, owner: object) -> bool:
    """Whether a function is a step: no decision, no method of a value, no part of another."""
    pure = place.startswith(PURE) and not place.startswith(EFFECTS)
    decides = any(part in place for part in DECISIONS)
    frozen = getattr(getattr(owner, "__dataclass_params__", None), "frozen", False)
    value = frozen and not place.startswith("nexus_site/")
    return not (pure or decides or value or name in INNER)


class Way:
    """Calls the site as a server does, and notes the functions of ours that the call passes."""

    def __init__(self, site: Site, company: Company) -> None:
        self.site, self.company = site, company
        self.steps: dict[str, None] = {}
        self.is_noting = False

    def watch(self, frame: Any, event: str, _: Any) -> None:
        if event != "call" or not self.is_noting:
            return
        code = frame.f_code
        place = code.co_filename.removeprefix(f"{ROOT}/")
        if place == code.co_filename or place.startswith(ELSEWHERE):
            return
        if place == "toolbox/wake.py":  # the change is committed
            self.is_noting = False
        elif is_step(place, code.co_name, frame.f_locals.get("self")):
            self.steps[f"{place} {code.co_qualname}"] = None

    def call(self, handle: str, tool: str, **params: Any) -> dict[str, Any]:
        """Call a tool over ASGI; `steps` are those of the last call."""
        key = self.company.key(handle)
        scope = {
            "type": "http", "method": "POST", "path": f"/api/v1/tools/{tool}", "query_string": b"",
            "client": ("127.0.0.1", 5), "server": ("localhost", 80), "scheme": "http",
            "headers": [
                (b"host", b"localhost"), (b"content-type", b"application/json"),
                (b"authorization", f"Bearer {key}".encode()),
            ],
        }  # fmt: skip
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": json.dumps(params).encode()}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        self.site.threads.submit(int).result()  # the thread has finished the call before
        self.steps, self.is_noting = {}, True
        sys.setprofile(self.watch)
        try:
            asyncio.run(self.site(scope, receive, send))
        finally:
            sys.setprofile(None)
        assert sent[0]["status"] == 200, sent
        return json.loads(sent[1]["body"])["result"]


@pytest.fixture
def way(transactional_db: None) -> Iterator[Way]:
    with ThreadPoolExecutor(1) as threads:
        made = Way(Site(threads), load_company("nexus"))
        threading.setprofile(made.watch)  # of the thread that the pool starts
        threads.submit(database_now).result()
        threading.setprofile(None)
        yield made
        threads.submit(connections.close_all).result()


def listed(heading: str) -> list[str]:
    """The steps under a heading of docs/call.md."""
    (steps,) = re.findall(rf"## {heading}\n.*?```\n(.*?)```", LISTED, re.DOTALL)
    return [line for line in steps.splitlines() if line]


def from_view(steps: list[str]) -> list[str]:
    return steps[steps.index("toolbox/faces/rest/views.py ToolCallView.post") :]


class TestAMail:
    @pytest.fixture
    def steps(self, way: Way) -> list[str]:
        way.call("backend_worker", "send_mail", **MAIL)
        way.call("backend_worker", "send_mail", **MAIL)
        return list(way.steps)

    def test_passes_what_is_listed(self, steps):
        assert steps == listed("A mail"), "docs/call.md: write\n" + "\n".join(steps)

    def test_passes_twenty_functions_at_most_from_its_view_on(self, steps):
        assert 10 < len(from_view(steps)) <= 20


class TestAClaim:
    @pytest.fixture
    def steps(self, way: Way) -> list[str]:
        for _ in range(2):
            task = way.call("it_manager", "task_create", subject="Build", description="It.")
            way.call("backend_worker", "task_update", taskId=task["id"], status="in_progress")
            steps = list(way.steps)
            way.call("backend_worker", "task_update", taskId=task["id"], status="completed")
        return steps

    def test_passes_what_is_listed(self, steps):
        assert steps == listed("A claim"), "docs/call.md: write\n" + "\n".join(steps)

    def test_passes_twenty_five_functions_at_most_from_its_view_on(self, steps):
        assert 10 < len(from_view(steps)) <= 25
