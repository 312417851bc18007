"""Ids that carry their time."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given, strategies

from core.ids import LETTERS, timed_id

BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)
MICROSECONDS = strategies.integers(0, 10**6 * 3600 * 24 * 365 * 1000)
HOURS = strategies.sampled_from([0, 8, -3])


@given(MICROSECONDS, HOURS)
def test_say_their_time_in_utc_to_the_microsecond(microseconds, hours):
    now = BEGINNING + timedelta(microseconds=microseconds)
    zone = timezone(timedelta(hours=hours))
    prefix, stamp, tail = timed_id("MAIL", now.astimezone(zone)).split("-")
    assert prefix == "MAIL"
    assert stamp == now.strftime("%Y%m%d%H%M%S%f")
    assert len(tail) == 4
    assert set(tail) <= set(LETTERS)
