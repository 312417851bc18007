"""How long a Dockerfile becomes where its variables stand for their values; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

UNKNOWN = 1_000
"""Characters that a variable is taken for whose value this file does not say."""
VERBATIM = frozenset({"RUN", "CMD", "ENTRYPOINT", "HEALTHCHECK", "SHELL", "MAINTAINER"})
"""The instructions in which the engine puts no values: the container's shell may."""
SETS = frozenset({"ENV", "ARG"})
USED = re.compile(r"\$\{?([A-Za-z0-9_]*)(/?)")
NAMED = re.compile(r"(?<!\S)([A-Za-z_][A-Za-z0-9_]*)=")
OLD_FORM = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?!\S)")
"""`ENV A x=1` gives A the value x=1; of `ARG A B=1` both are names."""


def expanded_length(instructions: Iterable[tuple[str, str]]) -> int:
    """The characters at most that these instructions, as verb and rest, have with all values.

    `ENV A=$A$A` doubles a value: thirty of them have an engine at work for years, and no limit of
    a build ends one instruction. A name that cannot be read may be each variable.
    """
    sizes: dict[str, int] = {}
    least = total = 0
    for verb, rest in instructions:
        if verb in VERBATIM:
            continue
        size = len(rest)
        for name, replaces in USED.findall(rest):
            value = max(sizes.get(name, UNKNOWN), least)
            size += value * len(rest) if replaces else value
        if verb in SETS:
            names = NAMED.findall(rest)
            if len(names) < rest.count("="):
                least = max(least, size)
            if old := OLD_FORM.match(rest):
                names.append(old[1])
            elif "=" not in rest.partition(" ")[0]:
                least = max(least, size)
            sizes |= {name: max(size, sizes.get(name, 0)) for name in names}
        total += size
    return total
