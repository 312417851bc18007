"""Parts of a larger change are written in its transaction."""

import pytest

from core.database import OutsideTransaction, after_commit, hold_lock


class TestWhatNeedsATransaction:
    @pytest.mark.parametrize("write", [lambda: after_commit(print), lambda: hold_lock("a name")])
    def test_is_refused_without_one(self, write):
        """A lock, for one, would be free again before its caller has done anything."""
        with pytest.raises(OutsideTransaction):
            write()
