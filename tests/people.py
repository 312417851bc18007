"""People of tests: which organisations they are members of."""

from core.people import signed_in_as
from orgchart.models import Membership
from orgchart.second_person.users import remove_second_factor, seen_factor


def join(user, *organisations):
    """Make a user a member of these organisations; of every one where none is named."""
    for organisation in organisations or (None,):
        Membership.objects.get_or_create(
            person=user, organisation=organisation, defaults={"added_by": "system:tests"}
        )
    return user


def remove_factor(user, *, by, now):
    """Remove a user's second factor as the page of a person shows it now; the code for the user."""
    who, seen = signed_in_as(by), seen_factor(user)
    return remove_second_factor(user=user, who=who, reason="R", now=now, seen=seen)
