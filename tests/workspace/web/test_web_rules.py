"""Addresses, redirects and kinds of answers: pure tables."""

import sys

import pytest

from core.decision import Allow, Code, Deny
from workspace.web import rules


class TestAnAddress:
    @pytest.mark.parametrize(
        "url",
        ["https://example.org/page?x=1", "http://93.184.216.34/", "https://example.org:8443/",
         "https://[2606:2800:220:1:248:1893:25c8:1946]/", "https://xn--bcher-kva.example/"],
    )  # fmt: skip
    def test_takes_public_addresses(self, url):
        assert isinstance(rules.can_fetch(url), Allow)

    @pytest.mark.parametrize(
        "url",
        ["http://localhost/", "http://LOCALHOST:8000/", "http://127.0.0.1/", "http://127.1/",
         "http://2130706433/", "http://0x7f.1/", "http://0x7f000001/", "http://017700000001/",
         "http://0/", "http://10.0.0.1/", "http://172.16.0.1/", "http://192.168.1.1/",
         "http://169.254.169.254/latest/meta-data/", "http://[::1]/", "http://[::ffff:127.0.0.1]/",
         "http://[fe80::1]/", "http://[fc00::1]/", "http://[64:ff9b::7f00:1]/", "http://[::]/",
         "http://[2002:7f00:1::]/", "http://db.internal/", "http://printer.local./", "http://redis/",
         "http://127.0.0.1./", "http://0.0.0.0/", "http://100.64.0.1/", "http://224.0.0.1/"],
    )  # fmt: skip
    def test_refuses_this_machine_and_its_network_in_every_notation(self, url):
        decision = rules.can_fetch(url)
        assert isinstance(decision, Deny)
        assert decision.code is Code.SCOPE_DENIED

    @pytest.mark.parametrize(
        "url",
        ["file:///etc/passwd", "ftp://example.org/", "gopher://example.org/", "javascript:alert(1)",
         "//example.org/", "example.org", "https://", "https://user:pw@example.org/", "http://[::1",
         "https://example.org:99999/", "https://example.org/\r\nHost: x", "https://①②⑦.⓪.⓪.①/",
         "data:text/html,x", "https://user@example.org/"],
    )  # fmt: skip
    def test_refuses_what_is_no_plain_address(self, url):
        decision = rules.can_fetch(url)
        assert isinstance(decision, Deny)
        assert decision.code is Code.INVALID_PARAMS

    def test_encodes_no_long_name(self):
        """Python's own encoding of a name takes time that grows with the square of its length."""

        def lines_of(length):
            lines = []

            def trace(frame, event, _):
                if not frame.f_code.co_filename.endswith("punycode.py"):
                    return None
                lines.append(event)
                return trace

            before = sys.gettrace()
            sys.settrace(trace)
            try:
                host = "".join(chr(0x4E00 + number) for number in range(length))
                decision = rules.can_fetch(f"https://{host}.example/")
            finally:
                sys.settrace(before)
            assert isinstance(decision, Deny)
            return len(lines)

        assert 0 < lines_of(500) <= 1.1 * lines_of(253)


class TestARedirect:
    @pytest.mark.parametrize(
        ("status", "location", "target"),
        [
            (301, "/b", "https://example.org/b"),
            (302, "//other.example/x", "https://other.example/x"),
            (307, " http://example.org/c#d ", "http://example.org/c"),
            (308, "file:///etc/passwd", "file:///etc/passwd"),
            (303, "http://[::1", "http://[::1"),
            (302, "", ""),
            (200, "/b", ""),
            (304, "/b", ""),
        ],
    )
    def test_leads_where_its_server_says(self, status, location, target):
        assert rules.redirect_target("https://example.org/a", status, location) == target


class TestAnAnswer:
    @pytest.mark.parametrize(
        ("header", "kind", "charset"),
        [
            ("text/html; charset=UTF-8", "text/html", "utf-8"),
            ('Text/Plain; x=1; charset="gbk"', "text/plain", "gbk"),
            ("text/html; charset=rot13", "text/html", ""),
            ("text/html; charset=idna", "text/html", ""),
            ("", "", ""),
        ],
    )
    def test_names_its_kind_and_an_encoding_of_text(self, header, kind, charset):
        assert rules.media_type(header) == (kind, charset)

    @pytest.mark.parametrize(
        ("kind", "is_text"),
        [
            ("text/html", True), ("application/xhtml+xml", True), ("text/markdown", True),
            ("application/ld+json", True), ("application/atom+xml", True),
            ("application/pdf", False), ("image/svg", False), ("application/jsonp/x", False),
            ("multipart/mixed", False), ("", False),
        ],
    )  # fmt: skip
    def test_is_read_where_it_is_text(self, kind, is_text):
        assert isinstance(rules.can_read(kind, "https://example.org/"), Allow) is is_text
