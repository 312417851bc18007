"""People of tests: which organisations they are members of."""

from orgchart.models import Membership


def join(user, *organisations):
    """Make a user a member of these organisations; of every one where none is named."""
    for organisation in organisations or (None,):
        Membership.objects.get_or_create(
            person=user, organisation=organisation, defaults={"added_by": "system:tests"}
        )
    return user
