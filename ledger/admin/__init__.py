"""The ledger as people read it: everything to look at, nothing to touch."""

from ledger.admin.events import EventAdmin
from ledger.admin.seals import SealAdmin

__all__ = ["EventAdmin", "SealAdmin"]
