"""One notice to a webhook: signed as Standard Webhooks say, to public addresses only."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import httpx
from django.conf import settings
from pydantic_core import to_json
from standardwebhooks import Webhook

from core.outgoing import close_after, resolve_once, trusted
from mailroom.models import OutgoingNotice
from orgchart.policy.compiled import Policy

TIMEOUT = httpx.Timeout(10.0, connect=5.0)
LONGEST = 12.0
"""Upper limit of one attempt, in seconds, after its name was resolved."""
NAME_SERVER = 5.0
"""Upper limit of a name server, in seconds."""


LONGEST_PAUSE = timedelta(hours=1)
"""Upper limit of the time that a receiver may ask for before the next attempt."""


class NoticeRefused(Exception):
    """The receiver did not accept the notice, and said when to come again, or that it is gone."""

    def __init__(self, answer: httpx.Response) -> None:
        super().__init__(f"the receiver answered {answer.status_code}")
        self.pause = pause_asked(answer.headers.get("Retry-After", ""), datetime.now(UTC))
        self.is_gone = answer.status_code == HTTPStatus.GONE


def pause_asked(retry_after: str, now: datetime) -> timedelta:
    """What a `Retry-After` header asks for, in seconds or as a date; 0 for anything else."""
    if re.fullmatch("[0-9]{1,9}", retry_after):
        pause = timedelta(seconds=int(retry_after))
    else:
        try:
            pause = parsedate_to_datetime(retry_after).replace(tzinfo=UTC) - now
        except (ValueError, OverflowError):
            return timedelta()
    return min(max(pause, timedelta()), LONGEST_PAUSE)


def secret_of(organisation: str) -> str:
    """The organisation's webhook secret, as receivers are given it (`whsec_…`).

    Derived from the installation's own secret, so that nothing has to be stored.
    """
    key = hmac.digest(
        settings.SECRET_KEY.encode(), f"webhook:{organisation}".encode(), hashlib.sha256
    )
    return "whsec_" + base64.b64encode(key).decode()


def send(row: OutgoingNotice, policy: Policy) -> None:
    """Post the notice. Raises NoticeRefused, AddressRefused, NotResolved, or httpx's own errors."""
    body = to_json(row.payload)
    internal = bool(policy.settings["allow_internal_addresses"])
    to = resolve_once(row.target, internal=internal, within=NAME_SERVER)
    signer = Webhook(secret_of(policy.organisation))
    at = datetime.now(UTC)
    headers = {
        "Host": to.host_header,
        "Content-Type": "application/json",
        "User-Agent": "NEXUS",
        "webhook-id": str(row.event_id),
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": signer.sign(str(row.event_id), at, body.decode()),
    }
    with (
        close_after(LONGEST) as trace,
        httpx.Client(
            timeout=TIMEOUT, follow_redirects=False, trust_env=False, verify=trusted()
        ) as client,
    ):
        request = client.build_request(
            "POST",
            to.url(to.addresses[0]),
            content=body,
            headers=headers,
            extensions={**to.extensions, "trace": trace},
        )
        response = client.send(request, stream=True)
        try:
            if not response.is_success:
                raise NoticeRefused(response)
        finally:
            response.close()
