"""Settings that reach the machine: a member of one organisation changes none of them."""

from dataclasses import replace

import pytest
from django.utils import timezone

from core.decision import Denied
from core.people import operator, signed_in_as
from core.permissions import PeopleGroup
from orgchart.editing import save_row
from orgchart.models import Organisation
from orgchart.services import set_settings
from orgchart.settings_rights import INSTALLATIONS
from tests.company import load_company
from tests.people import join

pytestmark = pytest.mark.django_db
VALUES = {
    "repository": "/var/lib/nexus/company/another/repository.git",
    "allow_internal_addresses": True,
}


@pytest.fixture
def company():
    return load_company("dev-team")


def by_service(company, caller, values):
    row = Organisation.objects.get(pk=company.organisation.pk)
    set_settings(organisation=row, values=values, caller=caller, now=timezone.now())


def by_form(company, caller, values):
    row = Organisation.objects.get(pk=company.organisation.pk)
    row.settings = {**row.settings, **values}
    save_row(
        row=row,
        organisation_id=row.pk,
        caller=caller,
        now=timezone.now(),
        reason="Because.",
        expected_version=None,
    )


@pytest.mark.parametrize("change", [by_service, by_form])
class TestASettingOfTheInstallation:
    @pytest.mark.parametrize("name", sorted(INSTALLATIONS))
    def test_is_not_changed_by_the_board_of_one_organisation(self, company, change, name):
        own = replace(company.person(PeopleGroup.BOARD), is_member_of_all=False)
        with pytest.raises(Denied) as refused:
            change(company, own, {name: VALUES[name]})
        assert refused.value.deny.code == "NOT_YOURS"
        assert "a member of every organisation" in refused.value.deny.next_action
        company.organisation.refresh_from_db()
        assert name not in company.organisation.settings

    @pytest.mark.parametrize("name", sorted(INSTALLATIONS))
    def test_is_changed_by_members_of_all_and_at_the_command_line(self, company, change, name):
        change(company, company.person(PeopleGroup.BOARD), {name: VALUES[name]})
        company.organisation.refresh_from_db()
        assert company.organisation.settings[name] == VALUES[name]
        change(company, operator(company.organisation.id), {name: type(VALUES[name])()})

    def test_leaves_the_others_to_them(self, company, change):
        own = replace(company.person(PeopleGroup.BOARD), is_member_of_all=False)
        change(company, own, {"board_webhook": "https://board.example/hook"})


def test_a_person_belongs_to_the_installation_by_being_a_member_of_all(company, django_user_model):
    user = django_user_model.objects.create_user("ada", is_staff=True)
    join(user, company.organisation)
    assert not signed_in_as("ada").on(company.organisation.id).is_member_of_all
    join(user)
    assert signed_in_as("ada").on(company.organisation.id).is_member_of_all
