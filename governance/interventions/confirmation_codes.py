"""Confirmation codes: one person, one action on one case in one state, used once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core import signing
from django.db import transaction
from django.http import HttpRequest
from django_otp.oath import TOTP
from django_otp.plugins.otp_totp.models import TOTPDevice

from core.actions import Action
from core.actors import Person
from core.database import is_in_last
from core.decision import Code, Denied, refuse
from core.hooks import Hook
from core.language import gettext_noop
from core.wording import Wording
from governance.interventions.models import CodeAttempt
from ledger.services import record
from mailroom.outgoing.outbox import notify_board
from orgchart.policy_cache import current_policy

LOCKED = gettext_noop("%(organisation)s: the confirmation codes of %(person)s are locked")
WRONG_CODES = gettext_noop("%(count)s wrong codes in a row, the last for %(action)s on %(case)s.")
TRIES = 5
LOCKED_FOR = timedelta(hours=1)
VALID_FOR = 600
"""Seconds between the preview of an action and its confirmation."""
STEPS_OF_DRIFT = 1
"""Steps of 30 seconds that a person's clock may be early or late."""
SALT = "nexus.confirmation"
RULE = "constitution: an override needs a confirmation code"
proves_password = Hook[[HttpRequest, str], bool](
    "whether this is the present password of who is signed in; guessing it locks out"
)
"""Asked before an authenticator is begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """What a code confirms: an action on a case at a version, with exactly these parameters."""

    action: str
    case_id: str
    version: int
    digest: str


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The proof that a person confirmed a purpose; services compare both."""

    username: str
    purpose: Purpose


def purpose_of(action: str, case_id: str, version: int, params: Mapping[str, Any]) -> Purpose:
    """The purpose of an action with its parameters, the reason among them."""
    text = json.dumps(params, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Purpose(action=action, case_id=case_id, version=version, digest=digest)


def preview_token(purpose: Purpose, person: Person) -> str:
    """A signed token of what the person was shown; only this can be confirmed with it."""
    return signing.dumps({"username": person.username, **asdict(purpose)}, salt=SALT)


def confirm(
    *, token: str, code: str, purpose: Purpose, person: Person, now: datetime, clock: datetime
) -> Confirmed:
    """Check a person's code for what the token shows, in a transaction of its own.

    `clock` is the time of this machine, which says at sign-in, too, what code is right: who can
    sign in can also confirm, whatever time the database has. Every try is kept and uses the code
    up; guesses of one person wait for each other. A right code that is sent again, as by a double
    click, is no wrong one. Raises Denied APPROVAL_REQUIRED without an authenticator, for a wrong or
    used code, after TRIES wrong ones in a row, and for a token of another person, action, case or
    state.
    """
    require_shown(token=token, purpose=purpose, person=person)
    with transaction.atomic():
        device = (
            TOTPDevice.objects.select_for_update()
            .filter(user__username=person.username, confirmed=True)
            .order_by("id")
            .first()
        )
        if device is None:
            raise _refused("you have no authenticator", "enrol one on the page Second factor")
        if is_locked(device.user_id, now):
            raise _refused("your codes are locked after five wrong ones", "try again in an hour")
        accepted = _verify(device, code, clock)
        if not accepted and _is_repeated(device, code, purpose):
            raise _wrong_or_used()
        CodeAttempt.objects.create(
            user_id=device.user_id,
            organisation_id=person.organisation_id,
            subject=f"case:{purpose.case_id}",
            action=purpose.action,
            version=purpose.version,
            accepted=accepted,
            at=now,
        )
        if not accepted:
            _record_wrong(device.user_id, purpose, person, now)
    if not accepted:
        raise _wrong_or_used()
    return Confirmed(person.username, purpose)


def require_shown(*, token: str, purpose: Purpose, person: Person) -> None:
    """Raises Denied APPROVAL_REQUIRED unless the token says that this person was shown this within
    VALID_FOR (Spec: constitution 35).
    """
    if not _shows(token, purpose, person):
        raise refuse(
            Code.APPROVAL_REQUIRED,
            "the confirmation belongs to something else or has expired",
            "begin again",
            rule="constitution: an action is shown before it happens (spec: constitution 35)",
        )


def is_locked(user_id: int, now: datetime) -> bool:
    """Whether the person's last codes were all wrong, the newest within the hour."""
    last = list(CodeAttempt.objects.filter(user_id=user_id).order_by("-id")[:TRIES])
    wrong = len(last) == TRIES and not any(each.accepted for each in last)
    return wrong and is_in_last(LOCKED_FOR, last[0].at, now=now)


def require_confirmed(confirmed: Confirmed | None, purpose: Purpose, person: Person) -> None:
    """Raises Denied APPROVAL_REQUIRED unless exactly this person confirmed exactly this."""
    if confirmed != Confirmed(person.username, purpose):
        raise _refused("this action needs your confirmation code", "open its page and enter it")


def has_authenticator(username: str) -> bool:
    """Whether the person has enrolled."""
    return bool(TOTPDevice.objects.filter(user__username=username, confirmed=True).exists())


def new_device(username: str) -> TOTPDevice:
    """A device that is not in use before its first code is confirmed; unconfirmed ones go."""
    user = get_user_model().objects.get_by_natural_key(username)
    TOTPDevice.objects.filter(user=user, confirmed=False).delete()
    device: TOTPDevice = TOTPDevice.objects.create(user=user, name="nexus", confirmed=False)
    return device


def pending_device(username: str, device_id: int | None) -> TOTPDevice | None:
    """The person's device of this id, if it waits for its first code."""
    rows = TOTPDevice.objects.filter(user__username=username, confirmed=False)
    found: TOTPDevice | None = rows.filter(id=device_id).first()
    return found


def enrol(*, username: str, device_id: int, code: str, clock: datetime) -> bool:
    """Put the pending device into use if the code is its own; False for a wrong code.

    A person who has an authenticator keeps it: False as well.
    """
    with transaction.atomic():
        rows = TOTPDevice.objects.select_for_update().filter(user__username=username)
        devices = {each.id: each for each in rows.order_by("id")}
        pending = devices.get(device_id)
        if any(each.confirmed for each in devices.values()) or pending is None:
            return False
        if not _verify(pending, code, clock):
            return False
        pending.confirmed = True
        pending.save(update_fields=["confirmed"])
    return True


def _verify(device: TOTPDevice, code: str, clock: datetime) -> bool:
    """Whether the code is the device's and newer than the last one; it is used up by this."""
    number = _number_in(code, device)
    if number is None:
        return False
    totp = TOTP(device.bin_key, device.step, device.t0, device.digits, device.drift)
    totp.time = clock.timestamp()
    if not totp.verify(number, tolerance=STEPS_OF_DRIFT, min_t=device.last_t + 1):
        return False
    device.last_t = totp.t()
    device.save(update_fields=["last_t"])
    return True


def _is_repeated(device: TOTPDevice, code: str, purpose: Purpose) -> bool:
    """Whether the code is the one that was accepted last, and for the same."""
    last = CodeAttempt.objects.filter(user_id=device.user_id).order_by("-id").first()
    if last is None or not last.accepted:
        return False
    before = (last.subject, last.action, last.version)
    if before != (f"case:{purpose.case_id}", purpose.action, purpose.version):
        return False
    totp = TOTP(device.bin_key, device.step, device.t0, device.digits)
    totp.time = device.t0 + device.last_t * device.step
    return bool(_number_in(code, device) == totp.token())


def _number_in(code: str, device: TOTPDevice) -> int | None:
    """The number of a code as a person types it; None where it has another form."""
    code = code.strip().replace(" ", "")
    is_code = code.isascii() and code.isdigit() and len(code) == device.digits
    return int(code) if is_code else None


def _shows(token: str, purpose: Purpose, person: Person) -> bool:
    try:
        shown = signing.loads(token, salt=SALT, max_age=VALID_FOR)
    except signing.BadSignature:
        return False
    return bool(shown == {"username": person.username, **asdict(purpose)})


def _record_wrong(user_id: int, purpose: Purpose, person: Person, now: datetime) -> None:
    subject = f"case:{purpose.case_id}"
    details = {"action": purpose.action, "version": purpose.version}
    record(Action.CODE_REFUSED, by=person, at=now, subject=subject, details=details)
    if not is_locked(user_id, now):
        return
    record(Action.CODE_LOCKED, by=person, at=now, subject=subject, details=details)
    policy = current_policy(person.organisation_id)
    notify_board(
        policy=policy,
        event="code.locked",
        subject=Wording(LOCKED, {"organisation": policy.organisation, "person": person.username}),
        body=Wording(
            WRONG_CODES, {"count": TRIES, "action": purpose.action, "case": purpose.case_id}
        ),
        data={"person": person.username, "case": purpose.case_id, "action": purpose.action},
        caller=person,
        now=now,
    )


def _wrong_or_used() -> Denied:
    return _refused("the code is wrong or was used", "wait for the next code and enter it")


def _refused(message: str, next_action: str) -> Denied:
    return refuse(Code.APPROVAL_REQUIRED, message, next_action, rule=RULE)
