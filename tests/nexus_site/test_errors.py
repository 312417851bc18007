"""Answers when no view could give one."""

import json

import psycopg
import pytest
from django.db import DatabaseError
from django.test import Client, RequestFactory
from jsonschema import validate

from nexus_site.serving import errors
from toolbox.faces.openapi import document

ENVELOPE = {
    **document()["components"]["schemas"]["ErrorBody"],
    "components": document()["components"],
}
HANDLERS = [
    (lambda request: errors.bad_request(request, ValueError()), 400, "INVALID_PARAMS"),
    (lambda request: errors.forbidden(request, ValueError()), 401, "UNAUTHENTICATED"),
    (lambda request: errors.not_found(request, ValueError()), 404, "NOT_FOUND"),
    (errors.server_error, 500, "INTERNAL"),
]


@pytest.mark.parametrize(("handler", "status", "code"), HANDLERS)
class TestHandlers:
    @pytest.mark.parametrize("path", ["/api/v1/x", "/mcp"])
    def test_give_a_program_the_envelope(self, handler, status, code, path):
        response = handler(RequestFactory().get(path))
        body = json.loads(response.content)
        assert response.status_code == status
        validate(body, ENVELOPE)
        assert (body["ok"], body["error_code"]) == (False, code)
        assert body["message"]
        assert body["next_action"]

    def test_give_a_person_a_page(self, handler, status, code):
        response = handler(RequestFactory().get("/admin/x"))
        assert response["Content-Type"].startswith("text/html")


class TestAFaultOfTheDatabase:
    """As where PostgreSQL has no room for the files of a sort: a page failed without a reason."""

    @pytest.mark.parametrize(
        ("cause", "status", "says"),
        [
            (psycopg.errors.DiskFull(), 507, "disk"),
            (psycopg.OperationalError(), 503, "interrupted"),
            (psycopg.errors.DeadlockDetected(), 503, "interrupted"),
            (psycopg.errors.DivisionByZero(), 500, "Something failed here"),
        ],
    )
    def test_is_told_to_a_person(self, monkeypatch, cause, status, says):
        problem = DatabaseError()
        problem.__cause__ = cause
        monkeypatch.setattr(errors.sys, "exception", lambda: problem)
        response = errors.server_error(RequestFactory().get("/admin/x"))
        assert response.status_code == status
        assert says in response.content.decode()


class TestUnknownAddress:
    def test_is_a_page_for_people(self, client):
        response = client.get("/nowhere")
        assert response.status_code == 404
        assert response["Content-Type"].startswith("text/html")


class TestTheLog:
    """Else it would grow as fast as strangers send: a foreign host was a traceback each time."""

    @pytest.mark.django_db
    def test_gets_no_line_of_a_strangers_bad_request(self, caplog):
        stranger = Client(enforce_csrf_checks=True)
        login = "/admin/login/"
        asked = {
            "host": Client().get(login, headers={"host": "e" * 8000}),
            "token": stranger.post(login),
            "address": stranger.post("/admin/" + "x" * 8000),
            "password": Client().post(login, {"username": "nobody", "password": "guessed"}),
            "fields": Client().post(login, {f"f{number}": "1" for number in range(1500)}),
        }
        statuses = {name: answer.status_code for name, answer in asked.items()}
        right = {"host": 400, "token": 403, "address": 403, "password": 200, "fields": 400}
        assert statuses == right
        assert caplog.records == []
