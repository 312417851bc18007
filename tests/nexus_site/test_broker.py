"""The embedded broker: private to its owner, and started again after a kill."""

import base64
import json
import os
import socket
import ssl
import stat
import time
from threading import Thread
from uuid import uuid4

import pytest
from celery import Celery
from celery.contrib.testing.worker import start_worker
from kombu import Connection
from kombu.exceptions import OperationalError

from nexus_site import celery
from nexus_site.run import broker, consumer, worker
from nexus_site.run.fork import fork, status_of
from nexus_site.run.sockets import SOCKET_PATH_LIMIT
from nexus_site.serving import health
from tests.certificates import authority
from tests.patience import PATIENCE, wait_until


def answers(var):
    try:
        with Connection(broker.url_under(var)) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0.05, timeout=0.2)
    except (OSError, OperationalError):
        return False
    return True


@pytest.fixture
def serve(tmp_path):
    """A function that starts the broker of a folder and gives its process id."""
    started = []

    def start(var=tmp_path):
        started.append(fork(lambda: broker.serve(var)))
        ends = time.monotonic() + PATIENCE
        while not answers(var):
            assert status_of(started[-1]) is None
            assert time.monotonic() < ends
        return started[-1]

    yield start
    for pid in started:
        stop(pid, 9)


def stop(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return None
    try:
        return status_of(pid, wait=True)
    except ChildProcessError:
        return None


@pytest.fixture
def work(serve, tmp_path, monkeypatch):
    """A client of a broker, and the process id of a worker that waits for its messages."""
    serve()
    monkeypatch.setattr(celery.app.conf, "broker_url", broker.url_under(tmp_path))
    monkeypatch.setattr(worker.safety, "problem_of_start", lambda: "")
    pid = fork(worker.work)
    try:
        with Connection(broker.url_under(tmp_path)) as connection:
            client = connection.default_channel.client
            wait_until(lambda: any(each["cmd"] == "brpop" for each in client.client_list()))
            yield client, pid
    finally:
        assert stop(pid, 15) == 0


def envelope(body, task="toolbox.run_job"):
    """A message as Celery sends it."""
    message = {
        "body": body,
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": {"id": "1", "task": task},
        "properties": {
            "delivery_tag": str(uuid4()),
            "delivery_info": {"exchange": "", "routing_key": "celery"},
            "body_encoding": "base64",
        },
    }
    return json.dumps(message)


FORGED = base64.b64encode(json.dumps([["forged"], {}, {}]).encode()).decode()
UNREADABLE = {
    "no JSON": "garbage",
    "no object": "7",
    "no envelope": "{}",
    "a body that is not encoded": envelope("!!!"),
    "a name of a task that is none": envelope(FORGED, task={}),
}


class TestServe:
    def test_takes_messages_and_gives_them_once(self, serve, tmp_path):
        serve()
        with Connection(broker.url_under(tmp_path)) as connection:
            queue = connection.SimpleQueue("celery")
            queue.put({"number": 1})
            message = queue.get(timeout=PATIENCE)
            assert message.payload == {"number": 1}
            message.ack()
            with pytest.raises(queue.Empty):
                queue.get_nowait()
            queue.close()

    def test_carries_no_orders_to_the_worker(self, serve, tmp_path):
        """`cancel_consumer` would stop every job, and the worker would go on living."""
        serve()
        app = Celery("nexus")
        app.config_from_object("django.conf:settings", namespace="CELERY")
        app.conf.broker_url = broker.url_under(tmp_path)
        with start_worker(app, perform_ping_check=False):
            assert app.control.ping(timeout=1) == []

    def test_is_told_nothing_by_the_worker(self, work):
        """A message that meets a broker which died is sent again and again: no worker would end."""
        client, _ = work
        assert "cmdstat_publish" not in client.info("commandstats")

    @pytest.mark.parametrize("message", UNREADABLE.values(), ids=UNREADABLE)
    def test_carries_no_message_that_ends_the_worker(self, work, message):
        client, pid = work
        client.lpush("celery", message, envelope(FORGED))
        wait_until(lambda: not client.llen("celery") and not client.exists("unacked"))
        assert status_of(pid) is None

    @pytest.mark.parametrize("message", UNREADABLE.values(), ids=UNREADABLE)
    def test_carries_no_flood_that_keeps_the_worker_from_its_jobs(self, work, message):
        """Each message that the worker gave back and connected again for cost 0.3 seconds."""
        client, pid = work
        connected = client.info("stats")["total_connections_received"]
        client.lpush("celery", *[message] * 300, envelope(FORGED))
        wait_until(lambda: not client.llen("celery"))
        assert status_of(pid) is None
        assert client.info("stats")["total_connections_received"] - connected < 10

    @pytest.mark.parametrize("key", ["celery", "celery\x06\x163", "unacked"])
    def test_is_not_asked_without_a_pause_where_another_program_uses_its_keys(self, work, key):
        client, pid = work
        client.set(key, "of another program")
        client.lpush("other" if key == "celery" else "celery", envelope(FORGED))
        connected = client.info("stats")["total_connections_received"]
        time.sleep(3 * consumer.PAUSE)
        assert client.info("stats")["total_connections_received"] - connected < 10
        client.delete(key)
        client.lpush("celery", envelope(FORGED))
        wait_until(lambda: not client.llen("celery"))
        assert status_of(pid) is None

    def test_lets_only_its_owner_in(self, serve, tmp_path):
        serve()
        folder = tmp_path / "broker"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE((folder / broker.SOCKET_NAME).stat().st_mode) == 0o700

    def test_ends_when_asked_and_leaves_nothing_to_read(self, serve, tmp_path):
        assert stop(serve(), 15) == 0
        assert [path.name for path in (tmp_path / "broker").iterdir()] == ["broker.log"]

    def test_starts_again_where_one_was_killed(self, serve):
        assert stop(serve(), 9) == -9
        serve()

    def test_has_a_socket_where_the_folder_has_a_long_name(self, serve, tmp_path):
        var = tmp_path / ("v" * SOCKET_PATH_LIMIT)
        var.mkdir()
        serve(var)
        broker.folder_under(var).joinpath("broker.log").unlink()


class TestReadyz:
    @pytest.mark.django_db
    def test_says_whether_the_broker_is_there(self, serve, tmp_path, client, monkeypatch):
        monkeypatch.setattr(health, "app", Celery(broker=broker.url_under(tmp_path)))
        assert client.get("/readyz").status_code == 503
        assert client.get("/readyz").json()["broker"] == "OperationalError"
        serve()
        health.readiness.forget()  # an answer is kept for a second
        assert client.get("/readyz").json()["broker"] == "reachable"


class TestEncryption:
    @pytest.fixture
    def site(self, tmp_path):
        """The port of a server with a certificate of its own, and what its client did."""
        serving, _ = authority(tmp_path, "localhost")
        did = []

        def serve(listener):
            client, _ = listener.accept()
            client.settimeout(PATIENCE)
            try:
                with serving.wrap_socket(client, server_side=True) as encrypted:
                    did.append(encrypted.recv(1) and "talked")
            except ssl.SSLError:
                did.append("refused")

        with socket.create_server(("localhost", 0)) as listener:
            Thread(target=serve, args=[listener], daemon=True).start()
            yield listener.getsockname()[1], did

    @pytest.mark.parametrize(
        ("query", "does"),
        [("", "refused"), ("?ssl_ca_certs={}", "talked"), ("?ssl_cert_reqs=none", "talked")],
    )
    def test_talks_to_no_server_that_it_cannot_verify(self, site, tmp_path, query, does):
        port, did = site
        url = f"rediss://localhost:{port}/0" + query.format(tmp_path / "localhost.pem")
        with (
            Connection(
                url, ssl=broker.encryption(url), transport_options=health.BROKER_PATIENCE
            ) as connection,
            pytest.raises(OperationalError),
        ):
            connection.ensure_connection(max_retries=1, timeout=1)
        wait_until(lambda: did)
        assert did == [does]


class TestHealth:
    @pytest.fixture
    def redis(self, serve, tmp_path, monkeypatch):
        """A client of the broker that is asked."""
        serve()
        asked = Celery(broker=broker.url_under(tmp_path))
        monkeypatch.setattr(health, "app", asked)
        with asked.connection() as opened:
            yield opened.default_channel.client

    @pytest.mark.parametrize(
        ("state", "problem"),
        [
            (lambda _: None, ""),
            (lambda redis: redis.config_set("maxmemory", 1), "OutOfMemoryError"),
            (lambda redis: redis.config_set("min-replicas-to-write", 1), "ResponseError"),
            (lambda redis: redis.replicaof("127.0.0.1", 1), "ReadOnlyError"),
        ],
    )
    def test_says_that_a_broker_takes_no_messages(self, redis, state, problem):
        """One that is full, or only reads, was called reachable."""
        state(redis)
        assert health.broker_problem() == problem

    def test_asks_a_broker_whose_user_writes_to_the_queues_only(self, redis):
        redis.acl_setuser(
            "default", enabled=True, nopass=True, reset_keys=True, keys=["celery"],
            commands=["+@all"],
        )  # fmt: skip
        assert health.broker_problem() == ""
