"""From a skill to its prompt: arguments and outputs as data, nothing read twice; pure."""

from __future__ import annotations

from collections.abc import Callable

from toolbox.quoting import quoted
from workspace.sandbox.programs import CommandOutcome
from workspace.skills.definition import ARGUMENTS, Command, Definition, Part

Runner = Callable[[str], CommandOutcome]


def prompt_of(skill: Definition, arguments: str, run: Runner) -> str:
    """The prompt of a skill started with these arguments, which it quotes as a JSON string.

    So it quotes what its commands print: the files they read may be of other agents, and no line
    of such a text looks like one of the prompt (Spec: skills 10, modes 22). The parts are those of
    the approved file: neither arguments nor outputs are looked through for commands or
    placeholders.
    """
    given = quoted(arguments)

    def written(part: Part) -> str:
        if isinstance(part, Command):
            return shown(run(part.line))
        return part.line.replace(ARGUMENTS, given)

    return "\n".join("".join(written(part) for part in line) for line in skill.lines)


def shown(outcome: CommandOutcome) -> str:
    """A command's output as a JSON string, and how it ended where that was not well."""
    text = quoted(outcome.output.decode("utf-8", errors="replace").rstrip("\n"))
    if outcome.timed_out:
        return f"{text} [stopped: its time was over]"
    if outcome.cut:
        return f"{text} [stopped: more output than is shown]"
    if outcome.status:
        return f"{text} [exit status {outcome.status}]"
    return text
