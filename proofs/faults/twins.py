"""Broken twins of the mechanisms that the company stands on; each must be found out.

A twin stands in while a file holds its name. It stops where its mechanism is weakest, writes down
beside that file that it is there, and waits for the kill.
"""

import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOR_EVER = 3600.0  # seconds: nobody leaves the weak moment alive


class Stage:
    """Which twin plays, and who reached its weak moment."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def plays(self, name: str) -> bool:
        try:
            return self.file.read_text() == name
        except FileNotFoundError:
            return False

    def chosen(self, name: str) -> bool:
        """Whether this call is the one that the twin carries out; one is enough."""
        if not self.plays(name):
            return False
        try:
            self.file.with_suffix(f".{name}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def stop(self, word: str = "") -> None:
        """Stand still at the weak moment, and say so."""
        moment(self.file).write_text(word)
        time.sleep(FOR_EVER)


def moment(file: Path) -> Path:
    """The mark of somebody at the weak moment."""
    return file.with_suffix(".moment")


def stand_in(file: Path) -> None:
    """Put every twin beside its mechanism; none plays until the file names it."""
    stage = Stage(file)
    for twin in (
        records_after_the_commit,
        answers_before_the_commit,
        forgets_its_answers,
        sweeps_without_a_lock,
        settles_before_it_sends,
        files_before_it_writes,
    ):
        twin(stage)


def records_after_the_commit(stage: Stage) -> None:
    from django.db import transaction

    from contracts.issuing import services as issuing

    record = issuing.record

    def late(action: Any, **fields: Any) -> int:
        if not stage.chosen("records_after_the_commit"):
            return record(action, **fields)

        def afterwards() -> None:
            stage.stop()
            with transaction.atomic():
                record(action, **fields)

        transaction.on_commit(afterwards)
        return 0

    issuing.record = late


def answers_before_the_commit(stage: Stage) -> None:
    from django.db import connection, transaction

    from toolbox import door

    call = door.call

    def early(caller: Any, name: str, params: Any, **options: Any) -> Any:
        if name != "send_mail" or not stage.chosen("answers_before_the_commit"):
            return call(caller, name, params, **options)
        answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def work() -> None:
            with transaction.atomic():
                answers.put(call(caller, name, params, **options))
                stage.stop(options["idempotency_key"])
            connection.close()

        threading.Thread(target=work, daemon=True).start()
        return answers.get()

    door.call = early


def forgets_its_answers(stage: Stage) -> None:
    from toolbox import idempotency

    begin, keep = idempotency.begin, idempotency.keep

    def unless_forgetful(remember: Callable[..., Any]) -> Callable[..., Any]:
        def maybe(*args: Any, **options: Any) -> Any:
            return None if stage.plays("forgets_its_answers") else remember(*args, **options)

        return maybe

    idempotency.begin, idempotency.keep = unless_forgetful(begin), unless_forgetful(keep)


def sweeps_without_a_lock(stage: Stage) -> None:
    from django.db import transaction

    from contracts import deadlines

    sweep = deadlines.sweep
    both = stage.file.with_suffix(".sweeps")

    def unlocked(due: Any, act: Callable[[Any], None], **options: Any) -> int:
        if not stage.plays("sweeps_without_a_lock"):
            return sweep(due, act, **options)
        rows = list(due[:1])
        if not rows:
            return 0
        with both.open("a") as file:
            file.write(f"{rows[0].pk}\n")
        ends = time.monotonic() + 30
        while both.read_text().split().count(str(rows[0].pk)) < 2 and time.monotonic() < ends:
            time.sleep(0.05)  # until another has taken the same row
        with transaction.atomic():
            act(rows[0])
        return 1

    deadlines.sweep = unlocked


def settles_before_it_sends(stage: Stage) -> None:
    from mailroom.outgoing import outbox

    send = outbox.webhook.send

    def too_late(row: Any, policy: Any) -> None:
        if not stage.chosen("settles_before_it_sends"):
            return send(row, policy)
        outbox.OutgoingNotice.objects.filter(id=row.id).update(state="sent")
        stage.stop()
        return None

    outbox.webhook.send = too_late


def files_before_it_writes(stage: Stage) -> None:
    from django.utils import timezone

    from documents import files

    write = files.write_file

    def late(organisation: str, path: str, text: str) -> bool:
        row = files.Document.objects.filter(path=path, filed_at=None)
        if not row.exists() or not stage.chosen("files_before_it_writes"):
            return write(organisation, path, text)
        row.update(filed_at=timezone.now())
        stage.stop()
        return True

    files.write_file = late
