"""The top agent's escalation: a note for the Board leaves the building (Spec: escalation 5)."""

import pytest
from django.db import transaction

from core.waiting import Desk, Viewer
from documents import services
from documents.models import Document
from ledger.models import Event
from mailroom.models import Mail, OutgoingNotice
from tests.documents.world import NOW, caller_of


@pytest.fixture
def reachable(nexus):
    nexus.settings = {**nexus.settings, "board_webhook": "https://board.example/hook"}
    nexus.save()
    return nexus


def note(nexus, *, for_board):
    return services.write_note(
        caller=caller_of(nexus, "ceo"), title="Help", content="x" * 5000,
        for_board=for_board, now=NOW,
    )  # fmt: skip


class TestANoteForTheBoard:
    def test_leaves_as_a_notice_with_its_path(self, reachable):
        written = note(reachable, for_board=True)
        payload = OutgoingNotice.objects.get().payload
        assert payload["type"] == "note.for_board"
        assert payload["data"]["path"] == written["path"]
        assert len(payload["data"]["body"]) == 2000

    def test_waits_as_a_mail_until_a_person_answers_or_marks_it(self, nexus):
        """Where no address is set, no notice says that it is there."""
        written = note(nexus, for_board=True)
        mail = Mail.objects.get()
        assert (mail.from_agent, mail.to_agent, mail.subject) == ("ceo", "board", "Help")
        assert mail.body == f"{written['path']}\n\n{'x' * 5000}"
        desk = Desk(Viewer(username="ada", organisations=None), lambda _: True)
        assert desk.counts["Report to the Board"] == 1

    def test_says_in_its_mail_that_it_is_longer(self, nexus):
        caller = caller_of(nexus, "ceo")
        services.write_note(caller=caller, title="T", content="x" * 10_000, for_board=True, now=NOW)
        body = Mail.objects.get().body
        assert len(body) == 10_000
        assert body.endswith(
            "x\n\n… The note is longer than a mail: the whole of it is at its path."
        )

    def test_is_recorded_where_no_address_is_set(self, nexus):
        note(nexus, for_board=True)
        assert not OutgoingNotice.objects.exists()
        assert Event.objects.get(action="notice.written").details["channels"] == []

    def test_is_told_together_with_the_note_or_not_at_all(self, reachable):
        with transaction.atomic():
            note(reachable, for_board=True)
            transaction.set_rollback(True)
        assert not OutgoingNotice.objects.exists()
        assert not Document.objects.exists()

    def test_is_the_only_kind_that_leaves(self, reachable):
        note(reachable, for_board=False)
        assert not OutgoingNotice.objects.exists()
