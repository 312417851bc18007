"""The state diagram of a task, drawn from the one table of transitions, so that it cannot drift."""

from tasks.vocabulary import LEAD_ONLY, TRANSITIONS, Status


def mermaid() -> str:
    """The diagram as Mermaid text; a transition of task leads alone says so."""
    lines = ["stateDiagram-v2", f"    [*] --> {Status.PENDING}"]
    for before, afters in TRANSITIONS.items():
        for after in afters:
            actors = " : task lead only" if (before, after) in LEAD_ONLY else ""
            lines.append(f"    {before} --> {after}{actors}")
        if not afters:
            lines.append(f"    {before} --> [*]")
    return "\n".join(lines)
