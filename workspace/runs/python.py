"""The Python of this installation, as programs in the sandbox see it: read-only."""

from __future__ import annotations

import sys
import sysconfig
from functools import cache
from pathlib import Path

from django.conf import settings

from workspace.sandbox.programs import Mount

PACKAGES = "/packages"
TOOLS = "/tools"
SYSTEM = Path("/usr")
"""What every program in the sandbox sees."""

ENVIRONMENT = {
    "PYTHONPATH": PACKAGES,
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}


@cache
def interpreter() -> Path:
    """The interpreter that serves, by the name that no link is part of."""
    return Path(sys.executable).resolve()


def packages() -> Path:
    """The folder of packages that tests may import: WORKSPACE_PACKAGES, or this installation's."""
    return settings.WORKSPACE_PACKAGES or Path(sysconfig.get_path("purelib")).resolve()


def mounts() -> tuple[Mount, ...]:
    """The interpreter, where it is not part of /usr, and the packages."""
    home = Path(sys.base_prefix).resolve()
    own = () if home.is_relative_to(SYSTEM) else (Mount(home, str(home)),)
    return (*own, Mount(packages(), PACKAGES))


def test_words() -> tuple[str, ...]:
    """How tests are run: by pytest where it is among the packages, else by unittest."""
    python = str(interpreter())
    if (packages() / "pytest").is_dir():
        return (python, "-m", "pytest", "-q", "--color=no", "-p", "no:cacheprovider")
    return (python, "-m", "unittest")


def linter() -> Path | None:
    """The linter's program, where it is installed."""
    places = (Path(sys.prefix) / "bin/ruff", Path("/usr/bin/ruff"), Path("/usr/local/bin/ruff"))
    return next((place.resolve() for place in places if place.is_file()), None)
