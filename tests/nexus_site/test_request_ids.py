"""The id of a request: always our own; a client's is bound for the log where it is a plain one."""

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from structlog.contextvars import get_contextvars

from nexus_site.serving.middleware import Observe


def observed(given):
    """What the log is bound to during a request with this id of its client's, and the answer."""
    bound = {}

    def view(request):
        bound.update(get_contextvars(), ours=request.request_id)
        return HttpResponse()

    return bound, Observe(view)(RequestFactory().get("/", HTTP_X_REQUEST_ID=given))


def test_a_plain_one_is_bound_beside_ours():
    bound, answer = observed("call-number-7")
    assert bound["client_request_id"] == "call-number-7"
    assert bound["request_id"] == bound["ours"] == answer["X-Request-ID"] != "call-number-7"


@pytest.mark.parametrize(
    "given", ["", "short", "x" * 65, "line\nevent=forged", "two words here", "引用-12345678"]
)
def test_any_other_is_left_out(given):
    bound, answer = observed(given)
    assert "client_request_id" not in bound
    assert bound["ours"] == answer["X-Request-ID"] != given
