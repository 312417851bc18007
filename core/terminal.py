"""Text for a terminal; pure."""

LINES = frozenset("\n\t")


def printable(text: str) -> str:
    """The text with nothing that moves a terminal's cursor, hides or writes over what is shown.

    For lines that quote what a stranger wrote: a file that is checked may be forged.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


def printable_lines(text: str) -> str:
    """The same for a text of several lines, which may end as those of ssh do."""
    if text.isprintable():  # most lines of a log
        return text
    lines = text.replace("\r\n", "\n")
    return "".join(each if each in LINES else printable(each) for each in lines)
