"""Where requests to other machines go: to the address that was checked, and no other."""

import socket
import time

import httpx
import pytest

from core import outgoing
from core.outgoing import AddressRefused, NotResolved, resolve_once
from tests.patience import PATIENCE

INSIDE = [
    "http://127.0.0.1/",
    "http://127.0.0.1:8000/admin/",
    "http://localhost/",
    "http://0.0.0.0/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://100.64.0.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[fe80::1]/",
    "http://[fc00::1]/",
    "http://[2002:7f00:1::]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b:1::7f00:1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:0:127.0.0.1]/",
    "http://[2001:0:7f00:1::]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
    "http://[100::1]/",
    "http://192.0.0.8/",
    "http://[::93.184.216.34]/",
    "http://[::ffff:93.184.216.34]/",
    "http://198.18.0.1/",
    "http://240.0.0.1/",
    "http://192.88.99.1/",
    "http://[64:ff9b::192.88.99.1]/",
    "http://[3fff::1]/",
    "http://[3fff:fff:ffff::1]/",
    "http://[::127.0.0.1]/",
    "http://user@127.0.0.1/",
]


class TestARequest:
    @pytest.mark.parametrize("target", INSIDE)
    def test_never_inside(self, target):
        with pytest.raises((AddressRefused, NotResolved)):
            resolve_once(target, internal=False)

    @pytest.mark.parametrize(
        ("target", "url", "host"),
        [
            ("https://93.184.216.34/a", "https://93.184.216.34:443/a", "93.184.216.34"),
            ("http://[2606:2800:220:1::1]:81", "http://[2606:2800:220:1::1]:81/", None),
            ("http://[3ffe:ffff::1]/", "http://[3ffe:ffff::1]:80/", None),
            ("http://192.88.98.1/", "http://192.88.98.1:80/", None),
            ("http://[64:ff9b::5db8:d822]/", "http://[64:ff9b::5db8:d822]:80/", None),
        ],
    )
    def test_to_what_is_public(self, target, url, host):
        found = resolve_once(target, internal=False)
        assert [found.url(each) for each in found.addresses] == [url]
        assert found.host_header == (host or target.removeprefix("http://").rstrip("/"))

    @pytest.mark.parametrize(
        "target", ["ftp://b.example/", "file:///etc/passwd", "gopher://b.example/", "b.example", ""]
    )
    def test_never_by_another_scheme(self, target):
        with pytest.raises(AddressRefused):
            resolve_once(target, internal=True)

    @pytest.mark.parametrize(
        "target",
        [
            "http://b.example:99999/",
            "http://b.example:-1/",
            "http://b.example:0x50/",
            "http://[::1",
        ],
    )
    def test_never_to_what_is_no_address(self, target):
        with pytest.raises(AddressRefused):
            resolve_once(target, internal=True)

    def test_never_where_one_of_the_names_addresses_is_inside(self, monkeypatch):
        found = [("93.184.216.34", 80), ("10.0.0.1", 80)]
        monkeypatch.setattr(
            socket, "getaddrinfo", lambda *a, **k: [(2, 1, 6, "", place) for place in found]
        )
        with pytest.raises(AddressRefused, match="not a public address"):
            resolve_once("http://board.example/", internal=False)

    @pytest.mark.parametrize("own", ["127.0.0.2", "::1"])
    def test_never_to_an_address_of_this_machine_however_public(self, monkeypatch, own):
        """It would pass what guards the machine from outside, and is not of its network."""
        monkeypatch.setattr(outgoing, "is_public", lambda _: True)
        target = f"http://[{own}]/" if ":" in own else f"http://{own}/"
        with pytest.raises(AddressRefused, match="not a public address"):
            resolve_once(target, internal=False)
        assert resolve_once(target, internal=True).addresses
        assert resolve_once("http://192.0.2.1/", internal=False).addresses

    def test_to_the_number_that_was_checked_whatever_the_name_says_next(self, monkeypatch):
        answers = iter(["93.184.216.34", "127.0.0.1"])
        monkeypatch.setattr(
            socket, "getaddrinfo", lambda *a, **k: [(2, 1, 6, "", (next(answers), 443))]
        )
        found = resolve_once("https://board.example/x?a=1", internal=False)
        assert next(answers) == "127.0.0.1", "asked once, and never again"
        assert found.url(found.addresses[0]) == "https://93.184.216.34:443/x?a=1"
        assert found.extensions == {"sni_hostname": "board.example"}
        assert found.host_header == "board.example"

    def test_by_the_ascii_name_of_a_name_in_other_letters(self, monkeypatch):
        monkeypatch.setattr(
            socket, "getaddrinfo", lambda *a, **k: [(2, 1, 6, "", ("93.184.216.34", 80))]
        )
        found = resolve_once("http://bücher.example:81/", internal=False)
        assert found.host_header == "xn--bcher-kva.example:81"

    def test_in_time_or_not_at_all(self, monkeypatch):
        monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: time.sleep(2))
        with pytest.raises(NotResolved, match="within 0 s"):
            resolve_once("http://slow.example/", internal=False, within=0.1)


class TestARequestByName:
    """As to the operator's own servers: httpx resolves the name, and has no limit for that."""

    @pytest.mark.parametrize("answer", ["silence", "no such name"])
    def test_ends_with_its_name_server_s_time(self, monkeypatch, over, answer):
        def ask(*_, **__):
            if answer == "silence":
                over.wait(PATIENCE)
            raise socket.gaierror(answer)

        monkeypatch.setattr(socket, "getaddrinfo", ask)
        monkeypatch.setattr(outgoing, "NAME_SERVER", 0.1)
        with (
            outgoing.close_after(5.0) as trace,
            httpx.Client(timeout=5.0, trust_env=False) as client,
            pytest.raises(httpx.ConnectError, match="engine"),
        ):
            client.get("http://engine.example/", extensions={"trace": trace})
