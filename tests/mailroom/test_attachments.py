"""An attachment exists, is kept as it was when the mail was sent, and opens for its readers."""

import base64
import hashlib

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from documents.models import KeptFile
from mailroom.models import Mail, MailRejection
from tests.company import count_ahead
from tests.contracts.world import accept, issue
from tests.mailroom.world import call, deactivate, put_file, put_in_clone, send, sent
from toolbox.quotas.stored import stored_by

PATH = "tests/search.py"


def attached(company, who="backend_worker", to="it_manager", path=PATH):
    return sent(company, who, to, attachments=[{"path": path, "description": "why"}])


def opened(company, who, mail_id, **more):
    return call(company, who, "read_mail", mail_id=mail_id, **more)


@pytest.fixture
def mail(nexus):
    put_in_clone(nexus, PATH, b"first")
    return attached(nexus)


class TestAnAttachment:
    def test_opens_for_its_recipient_who_may_not_read_the_path(self, nexus, mail):
        (found,) = opened(nexus, "it_manager", mail).result["attachments"]
        assert found == {
            "path": PATH,
            "description": "why",
            "sha256": hashlib.sha256(b"first").hexdigest(),
            "bytes": 5,
            "text": "first",
        }

    def test_stays_as_it_was_when_the_file_changes(self, nexus, mail):
        put_in_clone(nexus, PATH, b"second")
        for who in ("it_manager", "backend_worker"):
            (found,) = opened(nexus, who, mail).result["attachments"]
            assert found["text"] == "first"
        (later,) = opened(nexus, "it_manager", attached(nexus)).result["attachments"]
        assert later["text"] == "second"

    def test_opens_for_who_reads_the_mail_of_a_recipient_that_left(self, nexus):
        mail = attached(nexus, path=put_file(nexus, "agents/backend_worker/plan.md", b"first"))
        deactivate(nexus, "it_manager")
        (found,) = opened(nexus, "ceo", mail).result["attachments"]
        assert found["text"] == "first"

    def test_that_is_code_opens_for_no_role_that_reads_none(self, nexus, mail):
        """Spec: mail 44."""
        deactivate(nexus, "it_manager")
        assert opened(nexus, "ceo", mail).result["attachments"] == []

    @pytest.mark.parametrize("who", ["ceo", "qa_worker", "product_manager"])
    def test_opens_for_no_other_agent(self, nexus, mail, who):
        digest = hashlib.sha256(b"first").hexdigest()
        assert opened(nexus, who, mail).code == "NOT_FOUND"
        assert opened(nexus, who, mail, attachment=digest).code == "NOT_FOUND"

    def test_of_another_mail_does_not_open_by_its_digest(self, nexus, mail):
        other = sent(nexus, "qa_worker", "it_manager")
        digest = hashlib.sha256(b"first").hexdigest()
        assert opened(nexus, "qa_worker", other, attachment=digest).code == "NOT_FOUND"

    def test_that_is_long_opens_when_it_is_asked_for(self, nexus):
        text = "文" * 100_000
        mail = attached(nexus, path=put_in_clone(nexus, "tests/long.txt", text.encode()))
        (found,) = opened(nexus, "it_manager", mail).result["attachments"]
        assert "text" not in found
        whole = opened(nexus, "it_manager", mail, attachment=found["sha256"])
        assert whole.result["attachments"][0]["text"] == text

    def test_that_is_no_text_opens_as_base64(self, nexus):
        mail = attached(nexus, path=put_in_clone(nexus, "tests/x.png", b"\x89PNG\xff\x00"))
        (found,) = opened(nexus, "it_manager", mail).result["attachments"]
        assert {"text", "base64"}.isdisjoint(found)
        (whole,) = opened(nexus, "it_manager", mail, attachment=found["sha256"]).result[
            "attachments"
        ]
        assert base64.b64decode(whole["base64"]) == b"\x89PNG\xff\x00"

    def test_is_a_document_before_its_file_is_written(self, nexus):
        report = {"title": "Market", "content": "Big."}
        path = call(nexus, "research_worker", "write_report", **report).result["path"]
        mail = attached(nexus, "research_worker", "product_manager", path)
        (found,) = opened(nexus, "product_manager", mail).result["attachments"]
        assert found["text"] == "Big."

    def test_is_kept_once_for_one_content(self, nexus, mail):
        attached(nexus)
        attached(nexus, path=put_in_clone(nexus, "tests/copy.py", b"first"))
        assert KeptFile.objects.count() == 1

    def test_that_is_kept_already_is_not_sent_to_the_database(self, nexus, mail):
        with CaptureQueriesContext(connection) as asked:
            attached(nexus)
        assert not [each for each in asked if 'INSERT INTO "documents_keptfile"' in each["sql"]]

    def test_counts_once_in_what_its_organisation_stores(self, nexus, mail):
        """Spec: settings 6. A mail of some bytes stores twenty files of 4 MiB."""
        put_in_clone(nexus, PATH, b"x" * 100_000)
        count_ahead(nexus.organisation)
        before, _ = stored_by(nexus.organisation.id)
        for _ in range(2):
            attached(nexus)
        after, _ = stored_by(nexus.organisation.id)
        assert after - before == 100_000

    def test_without_room_for_it_is_not_kept(self, nexus, settings):
        """Spec: settings 6."""
        settings.NEXUS_BYTES_PER_DAY = 50_000
        put_in_clone(nexus, PATH, b"x" * 100_000)
        answer = send(nexus, "backend_worker", "it_manager", attachments=[{"path": PATH}])
        assert answer.code == "QUOTA_EXCEEDED"
        assert not KeptFile.objects.exists()
        assert not Mail.objects.exists()

    def test_is_kept_as_it_is(self, mail):
        with pytest.raises(IntegrityError, match="only added to"), transaction.atomic():
            KeptFile.objects.update(content=b"other")


class TestAPathWithoutAFile:
    @pytest.mark.parametrize("path", ["tests/nothing.py", "tests/", "tests"])
    def test_is_refused(self, nexus, path):
        answer = send(nexus, "backend_worker", "it_manager", attachments=[{"path": path}])
        assert (answer.status, answer.code) == (404, "NOT_FOUND")
        assert answer.body["next_action"]
        assert MailRejection.objects.get().code == "NOT_FOUND"
        assert not Mail.objects.exists()

    @pytest.mark.parametrize("there", [True, False])
    def test_outside_the_scope_does_not_say_whether_it_exists(self, nexus, there):
        if there:
            put_file(nexus, "agents/qa_worker/diary.md")
        path = "agents/qa_worker/diary.md" if there else "agents/qa_worker/nothing.md"
        answer = send(nexus, "backend_worker", "it_manager", attachments=[{"path": path}])
        assert answer.code == "SCOPE_DENIED"
        assert not KeptFile.objects.exists()

    def test_too_large_is_refused(self, nexus, monkeypatch):
        monkeypatch.setattr("documents.attachments.MAX_ATTACHED", 3)
        put_in_clone(nexus, PATH)
        answer = send(nexus, "backend_worker", "it_manager", attachments=[{"path": PATH}])
        assert answer.code == "QUOTA_EXCEEDED"
        assert not Mail.objects.exists()

    def test_of_one_of_two_keeps_neither(self, nexus):
        put_in_clone(nexus, PATH)
        files = [{"path": PATH}, {"path": "tests/nothing.py"}]
        assert send(nexus, "backend_worker", "it_manager", attachments=files).status == 404
        assert not KeptFile.objects.exists()


class TestAPathIntoTheRepository:
    @pytest.mark.parametrize(
        ("who", "path"),
        [
            ("backend_worker", "workspace/src/other/secret.py"),
            ("backend_worker", "workspace/agents/backend_worker/workspace/src/other/secret.py"),
            ("qa_worker", "judged/0123abcd/src/other/secret.py"),
            ("qa_worker", "workspace/src/other/secret.py"),
        ],
    )
    def test_carries_nothing_of_the_repository_that_its_sender_may_not_read(self, nexus, who, path):
        path = f"agents/{who}/{path}"
        put_file(nexus, path, b"SECRET")
        attachments = [{"path": path, "description": "mine"}]
        assert send(nexus, who, "it_manager", attachments=attachments).code == "SCOPE_DENIED"
        assert not KeptFile.objects.exists()

    @pytest.mark.parametrize("path", ["MEMORY.md", "groups/x/MEMORY.md", "repository.git/config"])
    def test_carries_nothing_of_the_company_whatever_a_contract_opens(self, nexus, path):
        put_file(nexus, path, b"SECRET")
        made = issue(nexus, "backend_worker", workspace_scope=[path])
        accept(nexus, made)
        attachments = [{"path": path, "description": "mine"}]
        assert send(nexus, "backend_worker", "it_manager", attachments=attachments).code == (
            "NOT_FOUND"
        )
        put_in_clone(nexus, path, b"my own")
        (found,) = opened(nexus, "it_manager", attached(nexus, path=path)).result["attachments"]
        assert found["text"] == "my own"
