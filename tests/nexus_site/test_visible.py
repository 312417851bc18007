"""Controls that turn text around are shown as what they are."""

import json

import pytest
from django.http import HttpResponse, JsonResponse
from django.template import engines
from django.template.response import SimpleTemplateResponse

from core.control_characters import CONTROLS
from nexus_site.console.visible import show_controls

TURNING = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
STEERING = [*range(9), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0)]
EVERY = [*map(chr, [*TURNING, *STEERING, 0x2028, 0x2029, 0xFEFF])]


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
        text = "".join(chr(n) for n in range(0x3000) if chr(n) not in EVERY)
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

    @pytest.mark.parametrize("control", EVERY)
    def test_covers_each_in_json(self, control):
        page = show_controls(JsonResponse({"text": control}))
        said = json.loads(page.content)["text"]
        assert said == (control if control in "\b\f" else f"[U+{ord(control):04X}]")

    def test_does_not_touch_files(self):
        sent = "\u202e".encode()
        assert show_controls(HttpResponse(sent, content_type="text/csv")).content == sent
