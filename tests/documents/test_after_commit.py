"""Files are written after the commit; what fails then does not touch the answer."""

import logging

import pytest
from django.db import OperationalError, transaction

from documents import files
from documents.memory import services


@pytest.mark.django_db(transaction=True)
class TestAfterCommit:
    @pytest.mark.parametrize(
        ("module", "writes", "begin"),
        [
            (files, "_write_document", lambda: files.write_document_on_commit(1)),
            (files, "write_file", lambda: files.write_file_on_commit("nexus", "a", "b")),
            (services, "write_memory_file", lambda: services.write_on_commit(None)),
        ],
    )
    def test_a_lost_connection_is_logged_alone(self, monkeypatch, caplog, module, writes, begin):
        def lost(*_):
            raise OperationalError("the connection is closed")

        monkeypatch.setattr(module, writes, lost)
        with caplog.at_level(logging.ERROR, "django.db.backends.base"), transaction.atomic():
            begin()
        assert "the connection is closed" in caplog.text
