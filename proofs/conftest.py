"""The long proofs run on the fixtures of the tests."""

from tests.conftest import *  # noqa: F403  their names are all public
from tests.ledger.conftest import ledger_db, ledger_dir  # noqa: F401
