"""Ask this container's own server whether it can work; exit 1 if not."""

import os
import sys
import urllib.request

host = os.environ.get("ALLOWED_HOSTS", "localhost").split(",")[0].strip()
request = urllib.request.Request(
    f"http://127.0.0.1:{os.environ.get('PORT', '8000')}/readyz", headers={"Host": host}
)
try:
    with urllib.request.urlopen(request, timeout=4) as answer:  # noqa: S310 - our own address
        sys.exit(0 if answer.status == 200 else 1)
except OSError as problem:
    sys.exit(f"not ready: {problem}")
