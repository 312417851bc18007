"""Text for a terminal; pure."""


def printable(text: str) -> str:
    """The text with nothing that moves a terminal's cursor, hides or writes over what is shown.

    For lines that quote what a stranger wrote: a file that is checked may be forged.
    """
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
