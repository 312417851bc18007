"""Answers that are kept for some seconds."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.kept import Kept


@pytest.fixture
def asked():
    return []


class TestKept:
    def test_is_found_out_once(self, asked):
        kept = Kept(lambda: asked.append(1) or len(asked), seconds=60)
        assert [kept(), kept()] == [1, 1]

    def test_is_found_out_again_when_its_seconds_are_over(self, asked):
        kept = Kept(lambda: asked.append(1) or len(asked), seconds=0)
        assert [kept(), kept()] == [1, 2]

    def test_is_found_out_again_when_it_is_to_be_forgotten(self, asked):
        kept = Kept(lambda: asked.append(1) or len(asked), seconds=60)
        kept()
        kept.forget()
        assert kept() == 2

    def test_is_asked_again_after_an_error(self, asked):
        def find():
            asked.append(1)
            if len(asked) == 1:
                raise LookupError("not yet")
            return len(asked)

        kept = Kept(find, seconds=60)
        with pytest.raises(LookupError, match="not yet"):
            kept()
        assert kept() == 2

    def test_is_found_out_by_one_of_many_who_ask_at_once(self, asked):
        def find():
            asked.append(threading.get_ident())
            time.sleep(0.05)
            return len(asked)

        kept = Kept(find, seconds=60)
        with ThreadPoolExecutor(8) as threads:
            assert list(threads.map(lambda _: kept(), range(8))) == [1] * 8
