"""Mail to the Board by TLS: a server that is not certainly the one that was named gets nothing."""

import socket
import ssl

import pytest
from aiosmtpd.smtp import SMTP

from mailroom.models import OutgoingNotice
from mailroom.outgoing import outbox
from tests.certificates import DAY, certificate
from tests.mailroom.mail_server import AnyPort, Postbox
from tests.mailroom.world import NOW, configure, notify_board


@pytest.fixture
def authority(tmp_path, monkeypatch):
    """An authority that this machine trusts."""
    made = certificate(tmp_path, name="authority.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(made[2]))
    return made


class Server(AnyPort):
    """With a certificate: from the first byte on, after STARTTLS, or never."""

    def __init__(self, box, file, how):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(file)
        self.offered = context if how == "starttls" else None
        first = {"ssl_context": context} if how == "smtps" else {}
        super().__init__(box, hostname="127.0.0.1", port=0, **first)

    def factory(self):
        return SMTP(self.handler, tls_context=self.offered, auth_require_tls=False)

    def _trigger_server(self):
        self.port = self.server.sockets[0].getsockname()[1]
        socket.create_connection(("127.0.0.1", self.port)).close()


@pytest.fixture
def sent(nexus, settings):
    """Send a notice to such a server; what arrived, and the notice."""

    def does(file, asked, how=None):
        box = Postbox()
        server = Server(box, file, how or asked)
        server.start()
        settings.EMAIL_BACKEND = "mailroom.outgoing.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        settings.EMAIL_USE_TLS, settings.EMAIL_USE_SSL = asked == "starttls", asked == "smtps"
        configure(nexus, board_email="board@b.example")
        notify_board(nexus, subject="Help")
        try:
            outbox.send_due(now=NOW)
        finally:
            server.stop()
        return len(box.letters), OutgoingNotice.objects.get()

    return does


@pytest.mark.parametrize("asked", ["starttls", "smtps"])
class TestAServer:
    def test_with_its_certificate_gets_the_mail(self, sent, authority, tmp_path, asked):
        count, notice = sent(certificate(tmp_path, signed_by=authority)[2], asked)
        assert (count, notice.state) == (1, "sent"), notice.last_problem

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"name": "mail.other.example"}, "IP address mismatch"),
            ({"starts": -2 * DAY, "ends": -DAY}, "certificate has expired"),
            ({"signed_by": None}, "self-signed certificate"),
        ],
    )
    def test_with_another_one_gets_nothing(self, sent, authority, tmp_path, asked, wrong, said):
        file = certificate(tmp_path, **{"signed_by": authority, **wrong})[2]
        count, notice = sent(file, asked)
        assert (count, notice.state) == (0, "pending")
        assert said in notice.last_problem

    def test_that_speaks_no_tls_gets_nothing(self, sent, authority, tmp_path, asked):
        """As where somebody between the two takes the offer of STARTTLS away."""
        file = certificate(tmp_path, signed_by=authority)[2]
        count, notice = sent(file, asked, how="plain")
        assert (count, notice.state, bool(notice.last_problem)) == (0, "pending", True)
