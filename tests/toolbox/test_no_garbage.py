"""A call leaves nothing that only the search for circles would find: its body is free at once."""

import gc
import io
import json

import pytest
from django.core.handlers.asgi import ASGIRequest

from nexus_site.serving.handlers import ApiHandler
from tests.loaded import loaded, nexus  # noqa: F401  fixtures

CALLS = {
    "a mail that is sent": ("tools/send_mail", {"to": "it_manager"}, 200),
    "a mail that is refused": ("tools/send_mail", {"to": "ceo"}, 403),
    "a body that cannot be read": ("tools/send_mail", None, 400),
    "a list": ("tools/read_inbox", {}, 200),
    "a session": ("sessions", {}, 201),
}
MAIL = {"type": "info", "subject": "Status", "body": "All is well."}


@pytest.mark.parametrize("what", CALLS)
def test_call(nexus, what):  # noqa: F811
    path, params, status = CALLS[what]
    if params and "to" in params:
        params = params | MAIL
    body = b"{" if params is None else json.dumps(params).encode()
    scope = {
        "type": "http", "method": "POST", "path": f"/api/v1/{path}", "query_string": b"",
        "headers": [
            (b"host", b"localhost"),
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"authorization", f"Bearer {nexus.key('backend_worker')}".encode()),
        ],
    }  # fmt: skip
    handler = ApiHandler()

    def call():
        response = handler.get_response(ASGIRequest(scope, io.BytesIO(body)))
        assert response.status_code == status, response.content

    call()  # what is made once is made now
    # Another thread may leave something meanwhile; what a call leaves is there after each.
    assert min(circles_after(call) for _ in range(3)) == 0


def circles_after(call):
    """How many objects only the search for circles finds after a call."""
    gc.collect()
    gc.disable()
    try:
        call()
        return gc.collect()
    finally:
        gc.enable()
