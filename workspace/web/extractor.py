"""A program of its own that takes the text out of pages: some markup keeps it busy for hours.

It is asked over a connection that it inherits: a line of JSON and a page's bytes; it answers JSON,
or nothing. A child of it reads each page and ends: what a page took is free afterwards.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
from multiprocessing.connection import Connection
from typing import NoReturn

SECONDS = 10
"""Of a processor, for one page; then the kernel ends the child, also without its parent."""
MEMORY = 768 * 1024**2
"""Bytes of addresses of a child, libraries included."""
NOTHING = b"null"
"""The answer for a page that takes too long, or too much memory."""
READY = b"ready"
TOO_DEEP = "Excessive depth"
"""How the parser begins to say that it stopped."""


def extracted(body: bytes, charset: str, most: int) -> tuple[str, str, bool]:
    """Title and text of a page, `most` characters and one more at most, and whether the parser
    read it to its end: what is in too many elements it leaves out, with all that follows.
    """
    # Two seconds to import, so it is imported by the one process that takes texts out of pages.
    from trafilatura import bare_extraction, html2txt, load_html
    from trafilatura.utils import HTML_PARSER, decode_file

    # A compressed page is unpacked to the length that it came with: no small one becomes huge.
    source = body.decode(charset, "replace") if charset else str(decode_file(body, len(body)))
    tree = load_html(source)
    if tree is None:  # a word, a line of JSON, one paragraph: not every server sends a whole page
        source = f"<html><body>{source}</body></html>"
        tree = load_html(source)
    if tree is None:
        return "", "", True
    is_whole = not any(TOO_DEEP in problem.message for problem in HTML_PARSER.error_log)
    title = str(tree.findtext(".//title") or "")
    found = bare_extraction(tree, include_comments=False, favor_recall=True)
    text = "" if found is None or isinstance(found, dict) else found.text
    return title[: most + 1], str(text or html2txt(source) or "")[: most + 1], is_whole


def main(descriptor: int) -> None:
    """Answer until the connection ends."""
    connection = Connection(descriptor)
    extracted(b"<p>imports what it needs</p>", "utf-8", 0)
    gc.freeze()
    connection.send_bytes(READY)
    while True:
        try:
            asked = connection.recv_bytes()
        except EOFError:
            return
        child = os.fork()
        if not child:
            _answer(connection, asked)
        if os.waitpid(child, 0)[1]:
            connection.send_bytes(NOTHING)


def _answer(connection: Connection, asked: bytes) -> NoReturn:
    """Answer within the limits, and end this process."""
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        question, _, body = asked.partition(b"\n")
        answer = json.dumps(extracted(body, **json.loads(question))).encode()
    except BaseException:  # noqa: BLE001  whatever it was, there is no text
        os._exit(1)
    connection.send_bytes(answer)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
