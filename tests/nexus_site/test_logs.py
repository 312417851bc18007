"""Lines of the log: one each, and nothing in them moves a terminal."""

import io
import logging

import pytest
import structlog

from nexus_site import logs

EVIL = "a\x1b]0;own\x07\x1b[2J\u202eb\nforged=line"


@pytest.fixture
def said():
    """What is written as in development; afterwards the suite's own set-up is back."""
    root = logging.getLogger()
    before, level, processors = root.handlers[:], root.level, structlog.get_config()["processors"]
    out = io.StringIO()
    logs.configure(level="INFO", as_json=False)
    root.handlers[-1].stream = out
    yield out
    root.handlers[:] = before
    root.setLevel(level)
    structlog.configure(processors=processors)  # the list that loggers in use hold


def fail():
    raise ValueError(EVIL)


class TestALine:
    @pytest.mark.parametrize("sent", [EVIL, "a\x1b]0;own\x07\x1b[2J\u202eb"])
    def test_of_what_a_stranger_sent_is_printable_and_one(self, said, sent):
        structlog.get_logger("nexus").warning("call_failed", path=sent)
        assert said.getvalue().count("\n") == 1
        assert said.getvalue().strip().isprintable()

    def test_holds_no_key(self, said):
        structlog.get_logger("nexus").warning("call_failed", path="/nxs_" + "k" * 43)
        assert f"/nxs_{'k' * 8}…" in said.getvalue()
        assert "k" * 9 not in said.getvalue()

    def test_of_a_fault_is_printable(self, said):
        try:
            fail()
        except ValueError:
            structlog.get_logger("nexus").exception("call_failed")
        assert "Traceback" in said.getvalue()
        assert all(each.isprintable() or each in "\n\t" for each in said.getvalue())
