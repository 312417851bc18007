"""Characters that no text column can hold: NUL, and half of a surrogate pair; pure."""

import re

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "\ufffd"
PROBLEM = "holds NUL or half a surrogate pair"
