"""What was sent stays as it was sent, and a mail has the statuses of the seed."""

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from core.machines import declared_transitions
from mailroom.models import Mail, MailRejection
from tests.mailroom.world import NOW, call, send, sent

SENT_PARTS = {
    "subject": "Other",
    "body": "Other",
    "priority": "critical",
    "mail_type": "report",
    "from_agent": "ceo",
    "to_agent": "ceo",
    "attachments": [{"path": "x"}],
    "contract_ref": "CON-1",
    "created_at": NOW.replace(year=2020),
    "delivered_at": NOW.replace(year=2020),
    "route_log": ["allowed"],
}


class TestASentMail:
    @pytest.fixture
    def mail(self, nexus):
        return sent(nexus, "it_manager", "backend_worker")

    @pytest.mark.parametrize("part", SENT_PARTS)
    def test_does_not_change(self, mail, part):
        with pytest.raises(IntegrityError, match="does not change"), transaction.atomic():
            Mail.objects.filter(id=mail).update(**{part: SENT_PARTS[part]})

    def test_keeps_the_time_it_was_read(self, nexus, mail):
        call(nexus, "backend_worker", "read_mail", mail_id=mail)
        with pytest.raises(IntegrityError, match="does not change"), transaction.atomic():
            Mail.objects.filter(id=mail).update(read_at=NOW.replace(year=2020))

    @pytest.mark.parametrize(
        "statement",
        [
            "DELETE FROM mailroom_mail",
            "DELETE FROM mailroom_mail WHERE false",
            "TRUNCATE mailroom_mail CASCADE",
        ],
    )
    def test_is_not_deleted(self, mail, statement):
        self.refused(statement)
        assert Mail.objects.filter(id=mail).exists()

    @pytest.mark.parametrize(
        "statement",
        [
            "DELETE FROM mailroom_mailrejection",
            "UPDATE mailroom_mailrejection SET reason = ''",
            "TRUNCATE mailroom_mailrejection",
        ],
    )
    def test_that_was_refused_is_kept(self, nexus, statement):
        send(nexus, "backend_worker", "ceo")
        self.refused(statement)
        assert MailRejection.objects.count() == 1

    def refused(self, statement):
        with (
            pytest.raises(DatabaseError, match=r"not deleted|insert-only"),
            transaction.atomic(),
            connection.cursor() as db,
        ):
            db.execute(f"SET CONSTRAINTS ALL IMMEDIATE; {statement}")


class TestTheStatuses:
    def test_are_the_specified_five_from_sent_on(self):
        assert declared_transitions(Mail, "status") == {
            ("sent", "delivered"),
            ("sent", "failed"),
            ("sent", "rejected"),
            ("delivered", "read"),
        }
        assert Mail().status == "sent"

    def test_of_a_delivery_is_delivered_in_the_statement_that_inserts_it(self, nexus):
        mail = Mail.objects.get(id=sent(nexus, "it_manager", "backend_worker"))
        assert (mail.status, mail.version, mail.delivered_at) == ("delivered", 1, NOW)

    @pytest.mark.parametrize("status", ["sent", "delivered", "failed", "rejected"])
    def test_are_all_that_the_table_takes(self, nexus, status):
        Mail.objects.bulk_create([self.row(nexus, status)])
        with pytest.raises(IntegrityError, match="mail_status_known"), transaction.atomic():
            Mail.objects.bulk_create([self.row(nexus, "lost")])

    def row(self, nexus, status):
        return Mail(
            id=f"MAIL-20260101000000000000-{status[:4]}",
            organisation=nexus.organisation,
            recipient=nexus.agent("qa_worker"),
            from_agent="system",
            to_agent="qa_worker",
            mail_type="info",
            subject="x",
            body="x",
            status=status,
        )
