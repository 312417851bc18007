"""Controls that turn text around are shown as what they are."""

import json

import pytest
from django.http import HttpResponse, JsonResponse
from django.template import engines
from django.template.response import SimpleTemplateResponse

from core.text_direction import CONTROLS
from nexus_site.console.visible import show_controls

EVERY = [*map(chr, [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])]


class TestShowControls:
    @pytest.mark.parametrize("control", EVERY)
    def test_shows_the_number_of_each(self, control):
        page = show_controls(HttpResponse(f"<b>pay {control}001</b>"))
        assert page.content.decode() == f"<b>pay [U+{ord(control):04X}]001</b>"

    def test_waits_for_a_template(self):
        template = engines["django"].from_string("{{ subject }}")
        page = show_controls(SimpleTemplateResponse(template, {"subject": "a\u202eb"}))
        assert page.render().content == b"a[U+202E]b"

    def test_leaves_what_a_form_sends_back_as_it_is(self):
        fields = '<input value="a\u202eb"><textarea name="body">\na\u202eb</textarea>'
        page = show_controls(HttpResponse(f"<b>\u202e</b>{fields}<i>\u202e</i>"))
        assert page.content.decode() == f"<b>[U+202E]</b>{fields}<i>[U+202E]</i>"

    def test_leaves_everything_else_alone(self):
        text = "".join(chr(n) for n in range(32, 0x3000) if not CONTROLS.match(chr(n)))
        assert show_controls(HttpResponse(text)).content.decode() == text

    def test_covers_look_ups(self):
        page = show_controls(
            JsonResponse({"text": "\u202e"}, json_dumps_params={"ensure_ascii": False})
        )
        assert CONTROLS.search(page.content.decode()) is None

    def test_covers_json_as_django_writes_it(self):
        sent = {"text": "a\u202eb", "code": "C:\\u202e", "odd": "\\\u2066"}
        page = show_controls(JsonResponse(sent))
        assert json.loads(page.content) == {
            "text": "a[U+202E]b", "code": "C:\\u202e", "odd": "\\[U+2066]"
        }  # fmt: skip

    def test_does_not_touch_files(self):
        sent = "\u202e".encode()
        assert show_controls(HttpResponse(sent, content_type="text/csv")).content == sent
