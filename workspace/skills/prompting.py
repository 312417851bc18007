"""From a skill to its prompt: arguments as data, outputs inserted, nothing read twice; pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from toolbox.quoting import quoted
from workspace.sandbox.programs import CommandOutcome
from workspace.skills.definition import ARGUMENTS, Command, Definition, Part

Runner = Callable[[str], CommandOutcome]


def prompt_of(skill: Definition, arguments: str, run: Runner) -> str:
    """The prompt of a skill started with these arguments, which it quotes as a JSON string.

    The parts are those of the approved file: neither arguments nor outputs are looked through for
    commands or placeholders.
    """
    given = quoted(arguments)

    def written(part: Part) -> str:
        if isinstance(part, Command):
            return shown(run(part.line))
        return part.line.replace(ARGUMENTS, given)

    return "\n".join("".join(written(part) for part in line) for line in skill.lines)


def shown(outcome: CommandOutcome) -> str:
    """A command's output as text, and how it ended where that was not well."""
    text = outcome.output.decode("utf-8", errors="replace").rstrip("\n")
    clean = "".join(c if c in "\n\t" or unicodedata.category(c) != "Cc" else "\ufffd" for c in text)
    if outcome.timed_out:
        note = "[stopped: its time was over]"
    elif outcome.cut:
        note = "[stopped: more output than is shown]"
    elif outcome.status:
        note = f"[exit status {outcome.status}]"
    else:
        return clean
    return f"{clean}\n{note}" if clean else note
