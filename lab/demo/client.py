"""The agents of the demo: nine HTTP clients, each with its own key and a session of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx

TIMEOUT = httpx.Timeout(40.0, connect=5.0)


@dataclass(frozen=True, slots=True)
class DemoAnswer:
    """What the installation answered."""

    status: int
    body: dict[str, Any]

    @property
    def code(self) -> str:
        """`OK`, or the error code."""
        return "OK" if self.status < 400 else str(self.body.get("error_code", self.status))

    @property
    def result(self) -> dict[str, Any]:
        """What the tool returned; empty where it was refused."""
        return dict(self.body.get("result") or {})


class DemoAgent:
    """One agent, as a framework outside would run it: a key, a session, HTTP and nothing else."""

    def __init__(self, *, name: str, key: str, url: str) -> None:
        self.name = name
        self._http = httpx.Client(
            base_url=url, timeout=TIMEOUT, headers={"Authorization": f"Bearer {key}"}
        )

    def begin(self) -> DemoAnswer:
        """Open a session for this day, so that yesterday's mode is not today's."""
        answer = self.post("/api/v1/sessions", {})
        session = answer.body.get("result") or answer.body
        self._http.headers["X-Nexus-Session"] = str(session.get("id", ""))
        return answer

    def call(self, tool: str, params: dict[str, Any], **headers: str) -> DemoAnswer:
        """Call a tool."""
        return self.post(f"/api/v1/tools/{tool}", params, **headers)

    def post(self, path: str, body: dict[str, Any], **headers: str) -> DemoAnswer:
        """Post a JSON object."""
        return _read(self._http.post(path, json=body, headers=headers))

    def get(self, path: str) -> DemoAnswer:
        """Get an address."""
        return _read(self._http.get(path))

    def close(self) -> None:
        """Let the connection go."""
        self._http.close()


def _read(response: httpx.Response) -> DemoAnswer:
    try:
        body = response.json()
    except ValueError:
        body = {"error_code": f"HTTP_{response.status_code}", "message": response.text[:200]}
    return DemoAnswer(response.status_code, body if isinstance(body, dict) else {"answer": body})
