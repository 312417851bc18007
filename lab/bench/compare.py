"""`make bench-compare`: what changed between the measurements kept at two commits."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

KEPT = "docs/bench.json"


def read(commit: str) -> dict[str, Any]:
    """The measurements kept at a commit, or those in the checkout for an empty name.

    Raises ValueError where there are none.
    """
    if not commit:
        return dict(json.loads(Path(KEPT).read_text("utf-8")))
    asked = ["git", "show", f"{commit}:{KEPT}"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"no {KEPT} at {commit}: {done.stderr.strip()}")
    return dict(json.loads(done.stdout))


def compare(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """A line for each ratio, processor time and value that both have.

    Rates are left out: they depend on the machine and what else it does.
    """
    before, after = _flat(old), _flat(new)
    return [
        f"{name:86}{before[name]:>10.2f}{after[name]:>10.2f}{_change(before[name], after[name])}"
        for name in before
        if name in after
    ]


def _flat(found: dict[str, Any]) -> dict[str, float]:
    flat: dict[str, float] = {}
    for name, figure in found["figures"].items():
        for other, values in figure["ratios"].items():
            flat[f"{name}: rate divided by that of {other}"] = statistics.median(values)
        for what in ("web_ms", "db_ms"):
            if figure[what]:
                flat[f"{name}: {what} of a call"] = statistics.median(figure[what])
    return {**flat, **found["values"]}


def _change(before: float, after: float) -> str:
    return f"{after / before - 1:>+9.0%}" if before else f"{'':>9}"


def main(old: str, new: str = "") -> int:
    """Print the comparison; 1 where a commit keeps no measurements."""
    try:
        lines = compare(read(old), read(new))
    except (ValueError, OSError) as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    print(f"{'':86}{old:>10}{new or 'checkout':>10}")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
