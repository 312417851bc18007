"""Marks texts that are kept and sent in English and shown to people in their language; pure.

Where such a text is shown, `django.utils.translation.gettext` looks it up in the catalogue. Rules
and vocabularies cannot import Django, and what goes to an agent or into the ledger stays English.
"""


def gettext_noop(text: str) -> str:
    """The same text; `manage.py translations` puts it into the catalogue."""
    return text
