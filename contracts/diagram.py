"""`python -m contracts.diagram`: the states of a contract as a picture, from the machine itself."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "contract-states.md"

WHO = {
    "accept": "assignee, accept_contract",
    "submit": "assignee, submit_report (completion)",
    "close_passed": "issuer, with QA's PASS where code is touched",
    "close_failed": "issuer",
    "close_cancelled": "issuer or the Board, with a reason",
}


def page() -> str:
    """The page with the diagram, as the transitions of the model are now."""
    from contracts.models import Contract
    from contracts.vocabulary import FINAL_STATES, State

    field = Contract._meta.get_field("state")  # noqa: SLF001  Django's own way to a field
    lines = [f"    [*] --> {State.PENDING}"]
    lines += sorted(
        f"    {move.source} --> {move.target} : {WHO[move.name]}"
        for move in field.get_all_transitions(Contract)
    )
    lines += [f"    {state} --> [*]" for state in FINAL_STATES]
    return "\n".join(
        [
            "# The states of a contract",
            "",
            "Written by `python -m contracts.diagram` from the machine; a test compares the two.",
            "",
            "```mermaid",
            "stateDiagram-v2",
            *lines,
            "```",
            "",
            "Every move names the version it saw or skips the check; a stale one changes nothing.",
            "A follow-up of a closed contract is a new one that names it in `supersedes`.",
            "",
        ]
    )


def main() -> None:
    """Write the page."""
    import os

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nexus_site.settings")
    django.setup()
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
