"""The embedded broker hands over every message whole, to one taker, whoever reads when."""

import builtins
import io
import threading
from concurrent.futures import ThreadPoolExecutor
from queue import Empty

import pytest
from django.conf import settings
from kombu import Connection
from kombu.transport import filesystem

from nexus_site.celery import app
from nexus_site.run import broker

WRITERS, EACH = 4, 100


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "control").mkdir()
    return tmp_path


@pytest.fixture
def channel(folder):
    """A function that opens a channel on the folder."""

    def open_channel():
        options = {
            "data_folder_in": str(folder),
            "data_folder_out": str(folder),
            "control_folder": str(folder / "control"),
        }
        return Connection(transport=broker.Transport, transport_options=options).channel()

    return open_channel


def take(channel, queue="celery"):
    try:
        return channel._get(queue)
    except Empty:
        return None


class TestMessages:
    def test_come_in_the_order_they_were_put_to_their_own_queue(self, channel):
        one = channel()
        one._put("celery", {"number": 1})
        one._put("other", {"number": 2})
        assert take(channel()) == {"number": 1}
        assert take(channel()) is None
        assert take(channel(), "other") == {"number": 2}

    def test_leave_no_file_behind(self, channel, folder):
        channel()._put("celery", {"number": 1})
        take(channel())
        assert [each.name for each in folder.iterdir()] == ["control"]

    def test_are_never_seen_before_they_are_whole(self, channel, monkeypatch):
        reader, seen, real = channel(), [], open

        def open_and_look(file, *args, **kwargs):
            monkeypatch.setattr(io, "open", real)
            monkeypatch.setattr(builtins, "open", real)
            opened = real(file, *args, **kwargs)
            seen.append(take(reader))
            return opened

        monkeypatch.setattr(io, "open", open_and_look)  # what a Path opens by
        monkeypatch.setattr(builtins, "open", open_and_look)
        channel()._put("celery", {"number": 1})
        assert seen == [None]
        assert take(reader) == {"number": 1}

    def test_reach_exactly_one_of_many_takers(self, channel):
        over = threading.Event()

        def write(writer):
            one = channel()
            for number in range(EACH):
                one._put("celery", {"number": [writer, number]})

        def read():
            one, got = channel(), []
            while True:
                ended = over.is_set()  # before the look: what was put by then is there to be seen
                message = take(one)
                if message:
                    got.append(tuple(message["number"]))
                elif ended:
                    return got

        with ThreadPoolExecutor(2 * WRITERS) as pool:
            readers = [pool.submit(read) for _ in range(WRITERS)]
            for writing in [pool.submit(write, writer) for writer in range(WRITERS)]:
                writing.result()
            over.set()
            got = [number for reading in readers for number in reading.result()]
        assert sorted(got) == [
            (writer, number) for writer in range(WRITERS) for number in range(EACH)
        ]

    @pytest.mark.parametrize("content", [b"", b'{"half', b"\xff"])
    def test_that_cannot_be_read_are_passed_over(self, channel, folder, content):
        (folder / "0_torn.celery.msg").write_bytes(content)
        channel()._put("celery", {"number": 1})
        assert take(channel()) == {"number": 1}
        assert take(channel()) is None


class TestTheTableOfAnExchange:
    def test_is_whole_from_its_first_moment(self, channel, monkeypatch):
        """A binder that comes first leaves nothing half written to who looks just then."""
        seen = []
        real = filesystem.lock

        def look_first(*args):
            monkeypatch.setattr(filesystem, "lock", real)
            seen.append(channel().get_table("celery"))
            return real(*args)

        monkeypatch.setattr(filesystem, "lock", look_first)
        channel()._queue_bind("celery", "celery", "", "celery")
        assert seen == [[]]
        assert [each.queue for each in channel().get_table("celery")] == ["celery"]

    def test_keeps_everybody_who_binds_at_once(self, channel):
        names = {f"queue{number}" for number in range(8)}
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: channel()._queue_bind("all", "", "", name), names))
        assert {each.queue for each in channel().get_table("all")} == names


class TestTheWorker:
    def test_takes_its_messages_by_this_transport(self):
        if settings.REDIS_URL:
            pytest.skip("this installation's broker is Redis")
        with app.connection_for_read() as connection:
            assert isinstance(connection.transport, broker.Transport)
