"""The long proofs run on the fixtures of the tests."""

from xdist.scheduler import LoadFileScheduling

from tests.conftest import *  # noqa: F403  their names are all public
from tests.ledger.conftest import ledger_db, ledger_dir  # noqa: F401

APART = ("proofs/browser/", "proofs/clients/")
LONG = ("proofs/browser/", "proofs/faults/", "proofs/tasks/", "proofs/siege/")
"""What takes long begins first."""


class ByFile(LoadFileScheduling):
    """A file's tests run in one process, for they share what they start; those APART in any."""

    def _split_scope(self, nodeid):
        return nodeid if nodeid.startswith(APART) else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config, log):
    """Used for any distribution that `make proofs` names."""
    return ByFile(config, log)


def pytest_collection_modifyitems(items):
    """Bring long files to the front: processes take files in this order."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))
