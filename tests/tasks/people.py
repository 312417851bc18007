"""People at the admin, each at a desk."""

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client

from tests.people import join


def sign_in(desk, **options) -> Client:
    """A client signed in at a desk; None: staff at no desk."""
    user, _ = get_user_model().objects.get_or_create(username=f"at-{desk}", is_staff=True)
    join(user)
    if desk:
        user.groups.set([Group.objects.get(name=desk)])
    client = Client(**options)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client
