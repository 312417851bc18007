"""When the ledger needs a person: events that are not sealed in time, a chain that is not whole."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from core.waiting import Alarm, Choice, Waiting
from ledger import chain_end
from ledger.sealer import read_backlog


def _sealing(now: datetime) -> Waiting | None:
    backlog = read_backlog(now=now)
    if backlog is None or not backlog.is_late:
        return None
    return Waiting(
        title=format_lazy(_("Event {seq} and those after it are not sealed"), seq=backlog.seq),
        asked_by=_("ledger"),
        since=now - timedelta(seconds=backlog.seconds),
        detail=format_lazy(
            _("held back by the database's process {pid} (role {role}, database {database})"),
            **backlog.holder._asdict(),
        )
        if backlog.holder
        else _("the sealer does not run, or fails: see the scheduled jobs"),
    )


def _end(now: datetime) -> Waiting | None:
    if chain_end.is_whole():
        return None
    if not chain_end.folder_answers():
        return Waiting(
            title=_("The ledger's folder does not answer"),
            asked_by=_("ledger"),
            since=now,
            detail=_("no seal is made until the disk of LEDGER_DIR answers"),
        )
    return Waiting(
        title=_("The end of the ledger is not as this machine kept it"),
        asked_by=_("ledger"),
        since=now,
        detail=_("the operator's command `manage.py ledger verify` says what is wrong"),
    )


KINDS = (
    Alarm(
        title=_("Ledger not sealed"),
        icon="gpp_maybe",
        permission="ledger.view_seal",
        problem=_sealing,
        choice=Choice(_("Look at the seals"), "admin:ledger_seal_changelist"),
    ),
    Alarm(
        title=_("Ledger not whole"),
        icon="gpp_bad",
        permission="ledger.view_seal",
        problem=_end,
        choice=Choice(_("Look at the seals"), "admin:ledger_seal_changelist"),
    ),
)
