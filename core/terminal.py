"""Text for a terminal."""


def one_line(text: str) -> str:
    """The text with nothing that moves a terminal's cursor, hides or writes over what is shown.

    For what quotes strangers: their files are read because nobody has to believe them.
    """
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
