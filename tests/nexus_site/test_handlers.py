"""What a call passes on its way to its view, and what it leaves behind."""

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import RequestFactory
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from nexus_site.serving.bridge import Bridge
from nexus_site.serving.handlers import LONGEST_KEPT, ApiHandler, _find
from nexus_site.serving.middleware import Observe


def query(request, name):
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    raise ZeroDivisionError(name)


urlpatterns = [path("api/break/<name>", csrf_exempt(query))]
handler500 = "nexus_site.serving.errors.server_error"
handler404 = "nexus_site.serving.errors.not_found"


@pytest.fixture
def handler(settings):
    settings.ROOT_URLCONF = __name__
    return ApiHandler()


def get(handler, address):
    return handler.get_response(RequestFactory().get(address))


@pytest.mark.django_db(transaction=True)
class TestConnection:
    def test_goes_back_to_the_pool_after_every_answer(self, handler):
        scope = {
            "type": "http", "method": "GET", "path": "/api/break/x", "query_string": b"",
            "headers": [(b"host", b"localhost")],
        }  # fmt: skip
        response = Bridge(handler=handler, threads=None, limit=10).answer(scope, b"")
        assert response.status_code == 500
        assert connection.connection is None


@pytest.mark.django_db
class TestErrors:
    def test_of_ours_are_the_envelope(self, handler):
        response = get(handler, "/api/break/x")
        assert response.status_code == 500
        assert b"INTERNAL" in response.content
        assert response.headers["X-Request-ID"]

    def test_name_an_address_that_is_none(self, handler):
        response = get(handler, "/api/nowhere")
        assert response.status_code == 404
        assert b"NOT_FOUND" in response.content


class TestAnAnswer:
    @pytest.mark.django_db
    @pytest.mark.parametrize(
        "path", ["/api/v1/me", "/readyz", "/metrics", "/admin/", "/admin/auth/user/", "/nothing"]
    )
    def test_is_kept_by_no_cache_on_the_way(self, client, path):
        assert "no-store" in client.get(path, HTTP_HOST="127.0.0.1").headers["Cache-Control"]

    def test_that_says_how_long_it_may_be_kept_keeps_its_word(self, rf):
        told = Observe(lambda _: HttpResponse(headers={"Cache-Control": "max-age=5"}))
        assert told(rf.get("/")).headers["Cache-Control"] == "max-age=5"


class TestFind:
    def test_keeps_no_address_that_is_none(self, handler):
        _find.cache_clear()
        for _ in range(3):
            get(handler, "/api/nowhere")
        assert _find.cache_info().currsize == 0

    @pytest.mark.django_db
    @pytest.mark.parametrize(("length", "kept"), [(LONGEST_KEPT, 1), (LONGEST_KEPT + 1, 0)])
    def test_keeps_no_long_address(self, handler, length, kept):
        _find.cache_clear()
        address = "/api/break/".ljust(length, "x")
        assert [get(handler, address).status_code for _ in range(2)] == [500, 500]
        assert _find.cache_info().currsize == kept
