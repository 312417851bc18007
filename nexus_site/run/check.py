"""`make check`: runs every check, also after one has failed."""

import os
import secrets
import subprocess
import sys
from dataclasses import dataclass, field

PYTHON = sys.executable
LAYERS = "from importlinter.cli import lint_imports_command as check; check()"
MANAGE = (PYTHON, "manage.py")
WORDS = ("tests/test_words.py", "tests/test_tests.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One tool, and what it needs to know."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


def checks() -> list[Check]:
    """All of them, the quick ones first."""
    production = {
        "NEXUS_ENV": "production",
        "SECRET_KEY": secrets.token_urlsafe(64),
        "ALLOWED_HOSTS": "nexus.example",
        "DATABASE_URL": "postgresql://nexus@database/nexus",
        "REDIS_URL": "redis://broker/0",
    }
    deploy = (*MANAGE, "check", "--deploy", "--fail-level", "WARNING")
    return [
        Check(name="style", command=(PYTHON, "-m", "ruff", "check", "-q", ".")),
        Check(name="format", command=(PYTHON, "-m", "ruff", "format", "-q", "--check", ".")),
        Check(name="words", command=(PYTHON, "-m", "pytest", "-q", *WORDS)),
        Check(name="layers", command=(PYTHON, "-c", LAYERS)),
        Check(name="migrations", command=(*MANAGE, "makemigrations", "--check", "--dry-run")),
        Check(name="production", command=deploy, environment=production),
        Check(name="types", command=(PYTHON, "-m", "mypy", ".")),
    ]


def passes(check: Check) -> bool:
    """Run one and tell how it went; its words only if it fails."""
    done = subprocess.run(
        check.command,
        env=os.environ | check.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        print(done.stdout, end="")
    print(f"{check.name}: {'fine' if done.returncode == 0 else 'FAILED'}", flush=True)
    return done.returncode == 0


def main() -> int:
    """Run every check; 1 if any failed."""
    return 0 if all([passes(check) for check in checks()]) else 1  # noqa: C419 - all of them run


if __name__ == "__main__":
    raise SystemExit(main())
