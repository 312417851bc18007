"""A text that shows nothing is blank, whatever characters it is made of."""

import pytest

from core.blank import is_blank


class TestIsBlank:
    @pytest.mark.parametrize(
        "text",
        ["", " ", "\t\n", "\u3000", "\u200b", "\u2060\ufeff", "\u115f", "\u1160", "\u3164",
         "\uffa0", "\u2800", "\u00ad", "\ufe0f", "\U000e0041", "\u034f", "\ue000"],
    )  # fmt: skip
    def test_of_spaces_and_invisible_characters(self, text):
        assert is_blank(text)
        assert is_blank(f" {text}{text}")
        assert not is_blank(f"{text}x")

    @pytest.mark.parametrize("text", ["x", "7", ".", "任务", "\u0e01\u0e31", "✅", "\U0001f680"])
    def test_not_of_what_shows_something(self, text):
        assert not is_blank(text)
