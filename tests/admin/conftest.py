"""A company and the people who look at it: one of each group, one of none, one superuser."""

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from core.permissions import PeopleGroup
from orgchart.models import ContactRule, Role
from tests.company import load_company
from tests.people import join

DESKS = [*PeopleGroup]


@pytest.fixture
def groups(db):
    """The groups as `migrate` leaves them."""
    return {desk: Group.objects.get(name=desk) for desk in PeopleGroup}


@pytest.fixture
def company(db):
    return load_company("nexus")


@pytest.fixture
def sign_in(groups):
    """A client signed in as somebody of the named group; None: staff at no desk."""

    def made(desk):
        username = str(desk or "nobody").lower()
        user, _ = get_user_model().objects.get_or_create(
            username=username, defaults={"is_staff": True}
        )
        join(user)
        if desk:
            user.groups.set([groups[desk]])
        client = Client(HTTP_HOST="127.0.0.1", enforce_csrf_checks=False)
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        return client

    return made


@pytest.fixture
def board(sign_in):
    return sign_in(PeopleGroup.BOARD)


@pytest.fixture
def hr(sign_in):
    return sign_in(PeopleGroup.HR)


@pytest.fixture
def observer(sign_in):
    return sign_in(PeopleGroup.OBSERVER)


@pytest.fixture
def nobody(sign_in):
    return sign_in(None)


@pytest.fixture
def rule(company):
    return ContactRule.objects.get(sender__name="it_manager", recipient__name="hr_manager")


@pytest.fixture
def role(company):
    return Role.objects.get(name="qa_worker")


@pytest.fixture
def now():
    return timezone.now()
