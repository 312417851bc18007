"""What a change allows and forbids, in the language of who reads it.

The sentences of `orgchart.policy.difference` are compared, kept in the ledger and in proposals, so
they are English; a page takes them apart by their patterns.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from core.admin.sentences import is_english
from core.patterns import PLACE, Pattern
from orgchart.policy.contact_difference import LATER

PATTERNS = (
    _("every agent may read every task"),
    _("notices may go to internal addresses"),
    _("changes of tasks are refused without the required role and version"),
    _("changes of tasks without the required role or version leave an event"),
    _("tasks that require %(role)s have an agent that can take them"),
    _("tasks of type %(type)s wait for approval"),
    _("sessions may be in %(mode)s"),
    _("members of %(group)s may delegate to each other"),
    _("%(role)s is denied %(denied)s"),
    _("%(role)s is of kind %(kind)s"),
    _("%(role)s leads tasks"),
    _("%(role)s does with tasks what its permissions name"),
    _("%(role)s has %(name)s = %(value)s"),
    _("%(role)s holds the office %(office)s"),
    _("%(agent)s acts as %(role)s (level %(level)s)"),
    _("%(manager)s manages %(agent)s"),
    _("%(manager)s reads what %(agent)s left"),
    _("%(agent)s left as a member of %(group)s"),
    _("%(agent)s left as %(role)s"),
    _("%(agent)s, which orders changes, gets other instructions"),
    _("reports of the department of %(role)s are no longer filed in %(path)s"),
    _("%(name)s leads to %(agent)s"),
    _("%(agent)s leads %(group)s"),
    _("%(agent)s is a member of %(group)s"),
    _("%(agent)s has the skill %(skill)s"),
    _("%(agent)s has the built-in %(tools)s"),
    _("%(agent)s has the built-ins %(tools)s"),
    _("%(agent)s may read the scope of its contracts"),
    _("%(agent)s may write the scope of its contracts"),
    _("%(agent)s may read %(path)s"),
    _("%(agent)s may write %(path)s"),
    _("%(agent)s may call %(tool)s in %(mode)s"),
    _("%(agent)s may contact any %(role)s under a contract"),
    _("%(agent)s may contact any %(role)s"),
    _("%(agent)s may contact %(recipient)s under a contract"),
    _("%(agent)s may contact %(recipient)s"),
    _("%(agent)s may send %(type)s to any %(role)s under a contract"),
    _("%(agent)s may send %(type)s to any %(role)s"),
    _("%(agent)s may send %(type)s to %(recipient)s under a contract"),
    _("%(agent)s may send %(type)s to %(recipient)s"),
    _("%(user)s: %(right)s in every organisation"),
    _("%(user)s: %(right)s in another organisation"),
    _("%(user)s: %(right)s in %(organisation)s"),
)
"""One for each kind of sentence; of two that fit, the first is meant."""

SPACED = ("denied", "organisation", "path", "tools", "value")
"""What may hold spaces: paths, names of organisations, and lists of tools."""
LIFTED = " (lifted)"


SINGLE = {name for pattern in PATTERNS for name in PLACE.findall(pattern)} - {*SPACED}
COMPILED = [Pattern.of(pattern, single=SINGLE) for pattern in PATTERNS]


def in_language(sentence: str) -> str:
    """One sentence in the language of the page; as it is if no pattern fits."""
    if sentence.endswith(LIFTED):
        fact = in_language(sentence.removesuffix(LIFTED))
        return gettext("%(fact)s (lifted)") % {"fact": fact}
    if sentence.endswith(LATER):
        fact = in_language(sentence.removesuffix(LATER))
        return gettext("%(fact)s (for later holders)") % {"fact": fact}
    for pattern in COMPILED:
        if (values := pattern.values_in(sentence)) is not None:
            return gettext(pattern.text) % values
    return sentence


def all_in_language(sentences: Iterable[str]) -> list[str]:
    """The sentences in the language of the page."""
    if is_english():
        return [*sentences]
    return [in_language(each) for each in sentences]
