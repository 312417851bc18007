"""A mail server that speaks SMTP for real, and keeps what it is given."""

from aiosmtpd.controller import Controller
from aiosmtpd.handlers import AsyncMessage


class Postbox(AsyncMessage):
    """Keeps what was handed in; answers each recipient as the script says, else 250."""

    def __init__(self):
        super().__init__()
        self.letters, self.script = [], iter(())

    async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802  SMTP's
        answer = next(self.script, "250 OK")
        if answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_message(self, message):
        self.letters.append(message)


class AnyPort(Controller):
    """On a port that the system chooses, known before the first client."""

    def _trigger_server(self):
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()
