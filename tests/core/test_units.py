"""Lengths of time and sizes as people read them."""

import pytest
from django.utils.translation import override

from core.admin.units import duration, rough_duration, size


@pytest.mark.parametrize(
    ("seconds", "english", "chinese"),
    [
        (0, "–", "–"),
        (1, "1 second", "1秒"),
        (7200, "2 hours", "2小时"),
        (86_400, "1 day", "1天"),
        (90_061, "1 day 1 hour 1 minute 1 second", "1天 1小时 1分钟 1秒"),
    ],
)
def test_seconds_are_said_in_the_largest_units(seconds, english, chinese):
    with override("en"):
        assert duration(seconds) == english
    with override("zh-hans"):
        assert duration(seconds) == chinese


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.0 seconds"), (4.26, "4.3 seconds"), (59, "59 seconds"), (60, "1 minute"),
        (90, "1 minute 30 seconds"), (3600, "1 hour"), (3605, "1 hour"),
        (3661, "1 hour 1 minute"), (86_405, "1 day"), (200_000, "2 days 7 hours"),
        (9.99, "10.0 seconds"),
    ],
)  # fmt: skip
def test_a_measured_time_is_said_in_two_units(seconds, words):
    with override("en"):
        assert rough_duration(seconds) == words


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1500, "1.5 KB"),
        (20_000_000, "20 MB"),
        (100_000_000_000, "100 GB"),
    ],
)
def test_bytes_are_said_as_limits_are_set(count, said):
    with override("en"):
        assert size(count) == said
