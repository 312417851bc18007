"""What a proxy forwards is believed of named proxies only."""

from ipaddress import ip_network

import pytest
from django.test import RequestFactory

from nexus_site.serving.proxies import Proxies, client_network

PROXIES = Proxies([ip_network("10.0.0.0/8"), ip_network("::1")])


def scope(client, **headers):
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"client": (client, 5), "scheme": "http", "headers": [(b"host", b"x"), *pairs]}


def resolved(client, **headers):
    found = PROXIES.resolve(scope(client, **headers))
    assert [name for name, _ in found["headers"]] == [b"host"]
    return found["client"][0], found["scheme"]


class TestResolve:
    @pytest.mark.parametrize("client", ["127.0.0.1", "192.0.2.1", "11.0.0.1", "::2", "none"])
    def test_believes_no_one_else(self, client):
        forged = {"x_forwarded_for": "192.0.2.9", "x_forwarded_proto": "https"}
        assert resolved(client, **forged, x_real_ip="1.1.1.1") == (client, "http")

    def test_believes_a_named_proxy(self):
        told = {"x_forwarded_for": "192.0.2.9", "x_forwarded_proto": "https"}
        assert resolved("10.1.2.3", **told) == ("192.0.2.9", "https")

    def test_knows_a_proxy_by_its_ipv4_address_on_a_socket_for_both(self):
        told = {"x_forwarded_for": "192.0.2.9", "x_forwarded_proto": "https"}
        assert resolved("::ffff:10.1.2.3", **told) == ("192.0.2.9", "https")

    def test_believes_no_ipv4_address_because_a_network_covers_how_it_is_written(self):
        proxies = Proxies([ip_network("::ffff:0:0/96")])
        assert not proxies.is_trusted("::ffff:192.0.2.1")

    @pytest.mark.parametrize(
        ("hops", "client"),
        [
            ("6.6.6.6, 192.0.2.9", "192.0.2.9"),
            ("6.6.6.6, 192.0.2.9, 10.0.0.7", "192.0.2.9"),
            ("192.0.2.9, evil", "10.0.0.1"),
            ("10.0.0.7", "10.0.0.1"),
            ("", "10.0.0.1"),
            ("2001:db8::1", "2001:db8::1"),
        ],
    )
    def test_believes_the_nearest_hop_that_is_no_proxy(self, hops, client):
        assert resolved("10.0.0.1", x_forwarded_for=hops)[0] == client

    @pytest.mark.parametrize("scheme", ["ftp", "", "https;http"])
    def test_ignores_a_scheme_that_is_none(self, scheme):
        assert resolved("10.0.0.1", x_forwarded_proto=scheme)[1] == "http"

    def test_leaves_a_request_without_such_headers_as_it_is(self):
        plain = scope("10.0.0.1")
        assert PROXIES.resolve(plain) is plain


class TestClientNetwork:
    @pytest.mark.parametrize(
        ("address", "counted"),
        [
            ("192.0.2.9", "192.0.2.9"),
            ("::ffff:192.0.2.9", "192.0.2.9"),
            ("2001:db8:1:2::1", "2001:db8:1:2::"),
            ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::"),
            ("2001:db8:1:3::1", "2001:db8:1:3::"),
            ("fe80::1%eth0", "fe80::"),
            ("", ""),
            ("none", "none"),
        ],
    )
    def test_is_what_one_client_holds(self, address, counted):
        assert client_network(RequestFactory().get("/", REMOTE_ADDR=address)) == counted
