"""The real server for tests: the site under uvicorn, in this process, on a port of its own."""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import uvicorn

from nexus_site.run import web
from tests.patience import PATIENCE


@contextmanager
def serving() -> Iterator[str]:
    """Serve the test's database over HTTP; the address. Needs committed data (`transaction`)."""
    from nexus_site.asgi import Site

    listening = web.listen_on(web.reserve(host="127.0.0.1", port=0))
    config = web.configure(Site(ThreadPoolExecutor(8, thread_name_prefix="served")), grace=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(
        target=lambda: asyncio.run(server.serve(sockets=[listening])), name="test-server"
    )
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        listening.close()


def answers(url: str) -> bool:
    """Whether somebody answers there."""
    return httpx.get(f"{url}/healthz", timeout=5).is_success
