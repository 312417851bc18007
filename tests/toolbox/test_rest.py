"""The REST API's own pieces: versions, the page for a person, errors outside a view."""

import json

import pytest
from django.contrib.auth import get_user_model
from django.test import Client, RequestFactory
from django.urls import get_resolver

from ledger.models import Event
from tests import loaded as loading
from toolbox.answers import INTERNAL
from toolbox.faces.rest import views

loaded, nexus = loading.loaded, loading.nexus
BROWSER = {"Accept": "text/html,application/xhtml+xml"}
READ = ["me", "tools", "prompt", "sessions/00000000-0000-4000-8000-000000000000"]


def signed_in(*, staff=True):
    user = get_user_model().objects.create_user("page_reader", is_staff=staff)
    client = Client(HTTP_HOST="127.0.0.1")
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


class TestAPersonWithABrowser:
    @pytest.mark.parametrize("address", READ)
    def test_sees_a_page_that_says_what_is_missing(self, nexus, address):
        answer = signed_in().get(f"/api/v1/{address}", headers=BROWSER)
        page = answer.content.decode()
        assert answer.status_code == 401
        assert answer["Content-Type"].startswith("text/html")
        assert "page_reader" in page
        assert "UNAUTHENTICATED" in page
        assert "<form" not in page
        assert "<script" not in page
        assert "<style" not in page
        assert "Content-Security-Policy" in answer

    @pytest.mark.parametrize("address", ["tools/send_mail", "explain", "sessions"])
    def test_has_no_page_for_what_changes_something(self, nexus, address):
        answer = signed_in().get(f"/api/v1/{address}", headers=BROWSER)
        assert (answer.status_code, answer.json()["error_code"]) == (405, "METHOD_NOT_ALLOWED")

    def test_gets_no_right_from_being_signed_in(self, nexus):
        for address in ["tools/current_time", "explain", "sessions"]:
            answer = signed_in_once().post(
                f"/api/v1/{address}", {}, content_type="application/json", headers=BROWSER
            )
            assert (answer.status_code, answer.json()["ok"]) == (401, False)

    def test_who_is_not_staff_sees_json(self, nexus):
        answer = signed_in(staff=False).get("/api/v1/me", headers=BROWSER)
        assert answer.json()["error_code"] == "UNAUTHENTICATED"

    def test_with_an_agents_key_is_that_agent_and_sees_json(self, nexus):
        key = {"Authorization": f"Bearer {nexus.key('backend_worker')}"}
        answer = signed_in().get("/api/v1/me", headers={**BROWSER, **key})
        assert answer.json()["agent"] == "backend_worker"

    def test_needs_files_that_are_served(self, nexus):
        page = signed_in().get("/api/v1/me", headers=BROWSER).content.decode()
        files = [part.split('"')[0] for part in page.split('href="')[1:] if ".css" in part[:99]]
        assert files
        for file in files:
            assert Client().get(file).status_code == 200, file


def signed_in_once():
    user = get_user_model().objects.filter(username="page_reader").first()
    if user is None:
        return signed_in()
    client = Client(HTTP_HOST="127.0.0.1")
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


class TestARefusalOutsideOfTools:
    @pytest.mark.parametrize(
        ("method", "address", "body", "called"),
        [
            ("get", "sessions/00000000-0000-4000-8000-000000000000", "", "sessions.read"),
            ("get", "tools?format=nothing", "", "tools.list"),
            ("post", "sessions", "{", "sessions.open"),
            ("post", "sessions", '{"mode": "coding"}', "sessions.open"),
            ("post", "explain", "{", "calls.explain"),
            ("post", "explain", '{"tool": 7}', "calls.explain"),
        ],
    )
    def test_leaves_one_event(self, nexus, method, address, body, called):
        """Who tried ids of others' sessions in an address was seen by no one."""
        key = {"Authorization": f"Bearer {nexus.key('backend_worker')}"}
        send = getattr(Client(HTTP_HOST="127.0.0.1"), method)
        content = {"data": body, "content_type": "application/json"} if body else {}
        answer = send(f"/api/v1/{address}", headers=key, **content).json()
        event = Event.objects.get(decision="deny")
        assert (answer["ok"], answer["tool_name"], event.tool) == (False, called, called)
        assert (event.actor, event.code) == ("agent:backend_worker", answer["error_code"])


class TestVersions:
    @pytest.mark.parametrize("address", ["v2/me", "v2/tools/send_mail", "V1/me", "v1/none"])
    def test_that_do_not_exist_are_no_address(self, nexus, address):
        answer = nexus.get(f"/api/{address}", "backend_worker")
        assert (answer.status, answer.code) == (404, "NOT_FOUND")


class TestEveryAddress:
    def test_of_an_agent_is_a_view_with_the_one_way_to_prove_a_caller(self):
        api = next(r for r in get_resolver().url_patterns if str(r.pattern) == "api/")
        calls = next(r for r in api.url_patterns if str(r.pattern) == "v1/")
        assert len(calls.url_patterns) == 7
        for one in calls.url_patterns:
            assert issubclass(one.callback.cls, views.AgentView)
            names = [c.__name__ for c in one.callback.cls.authentication_classes]
            assert names == ["AgentKeyAuthentication"]
            assert [c.__name__ for c in one.callback.cls.throttle_classes] == [
                "TokenBucketThrottle"
            ]


class TestOurOwnFault:
    def test_is_said_alike_by_view_and_handler(self, nexus, monkeypatch):
        def broken(*_, **__):
            raise RuntimeError("a fault of ours")

        from nexus_site.serving import errors

        said = [errors.server_error(RequestFactory().get("/api/v1/me")), errors.broken("/mcp")]
        monkeypatch.setattr("toolbox.faces.prompt.build", broken)
        answer = nexus.get("/api/v1/prompt", "backend_worker")
        bodies = [answer.body, *(json.loads(one.content) for one in said)]
        assert answer.status == 500
        assert {body["message"] for body in bodies} == {INTERNAL.message}
        assert bodies[0] == bodies[1] == bodies[2]
