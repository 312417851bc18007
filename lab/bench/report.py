"""What a benchmark found: printed as it goes, and kept as JSON that two commits are compared by."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

from lab.bench.contest import Figure, middle, spread
from lab.bench.load import Rate

NAMES = ("calls/s", "±", "p50 ms", "p99 ms", "web ms", "db ms")
HEAD = f"{'':34}{'clients':>8}" + "".join(f"{name:>8}" for name in NAMES)


@dataclass
class Report:
    """Figures by name and number of clients, and single values by name."""

    say: Callable[[str], object]
    machine: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)

    def begin(self) -> None:
        """Say on what machine this is measured."""
        self.machine = describe_machine()
        self.say("\n".join(f"{name}: {value}" for name, value in self.machine.items()))
        self.say(HEAD)

    def contest(self, clients: int, figures: Mapping[str, Figure]) -> None:
        """Print and keep the figures of a contest: medians, spread, ratios."""
        for name, figure in figures.items():
            self.figures[f"{name}, {clients} clients"] = _rounded(asdict(figure))
            self.say(_line(name, clients, figure))

    def line(self, what: str, clients: int, rate: Rate, compared: Rate | None = None) -> Rate:
        """Print and keep one measurement, and its ratio where it is compared."""
        figure = Figure(rates=[rate.per_second], p50=[rate.p50], p99=[rate.p99])
        figure.unexpected = rate.unexpected
        if compared is not None and compared.per_second:
            figure.ratios["the line above"] = [rate.per_second / compared.per_second]
        self.contest(clients, {what: figure})
        return rate

    def value(self, name: str, value: float, unit: str) -> None:
        """Print and keep one value."""
        self.values[f"{name} ({unit})"] = round(value, 3)
        self.say(f"{name:60}{value:>12.2f} {unit}")

    def write(self, path: Path) -> None:
        """Keep everything as JSON."""
        found = {"machine": self.machine, "values": self.values, "figures": self.figures}
        path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", "utf-8")


def _line(name: str, clients: int, figure: Figure) -> str:
    ratios = "".join(
        f"  ×{middle(values):.2f} [{min(values):.2f}–{max(values):.2f}] of {other}"
        f"{_cpu(figure.cpu_ratios.get(other, []))}"
        for other, values in figure.ratios.items()
    )
    wrong = f"  ({figure.unexpected} unexpected answers)" if figure.unexpected else ""
    return (
        f"{name:34}{clients:>8}{middle(figure.rates):>8.0f}{spread(figure.rates):>8.0%}"
        f"{middle(figure.p50):>8.2f}{middle(figure.p99):>8.2f}"
        f"{middle(figure.web_ms):>8.2f}{middle(figure.db_ms):>8.2f}{ratios}{wrong}"
    )


def _cpu(values: list[float]) -> str:
    return f" (CPU ×{middle(values):.2f})" if values and middle(values) else ""


def _rounded(value: Any) -> Any:
    """The value with its numbers short enough to read."""
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    return value


def describe_machine() -> dict[str, Any]:
    """Processor, memory, load, versions and commit."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        (postgres,) = cursor.fetchone()
    return {
        "processors": os.cpu_count(),
        "processor": _named("/proc/cpuinfo", r"model name\s*: (.+)"),
        "memory": _named("/proc/meminfo", r"MemTotal:\s*(.+)"),
        "load before": " ".join(f"{one:.1f}" for one in os.getloadavg()),
        "python": platform.python_version(),
        "postgresql": postgres,
        "commit": _commit(),
    }


def _named(path: str, pattern: str) -> str:
    try:
        found = re.search(pattern, Path(path).read_text("utf-8"))
    except OSError:
        found = None
    return found[1].strip() if found else platform.machine()


def _commit() -> str:
    asked = ["git", "-C", str(settings.BASE_DIR), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout.strip()
