"""A program of its own that takes the text out of pages: some markup keeps it busy for hours.

It is asked over a connection that it inherits: a line of JSON and a page's bytes; it answers JSON.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from multiprocessing.connection import Connection

SECONDS = 10
"""Of a processor, for one page; then the kernel ends the program, also without its parent."""
MEMORY = 2 * 1024**3
"""Bytes of addresses; most of them are libraries."""
READY = b"ready"


def extracted(body: bytes, charset: str, most: int) -> tuple[str, str]:
    """Title and text of a page, `most` characters and one more at most."""
    # Two seconds to import, so it is imported by the one process that takes texts out of pages.
    from trafilatura import bare_extraction, html2txt, load_html
    from trafilatura.utils import decode_file

    source = body.decode(charset, "replace") if charset else str(decode_file(body))
    tree = load_html(source)
    if tree is None:
        return "", ""
    title = str(tree.findtext(".//title") or "")
    found = bare_extraction(tree, include_comments=False, favor_recall=True)
    text = "" if found is None or isinstance(found, dict) else found.text
    return title[: most + 1], str(text or html2txt(source) or "")[: most + 1]


def main(descriptor: int) -> None:
    """Answer until the connection ends."""
    connection = Connection(descriptor)
    extracted(b"<p>imports what it needs</p>", "utf-8", 0)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    connection.send_bytes(READY)
    while True:
        try:
            asked, _, body = connection.recv_bytes().partition(b"\n")
        except EOFError:
            return
        used, (_, hard) = int(time.process_time()), resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (used + SECONDS, hard))
        answer = extracted(body, **json.loads(asked))
        connection.send_bytes(json.dumps(answer).encode())


if __name__ == "__main__":
    main(int(sys.argv[1]))
