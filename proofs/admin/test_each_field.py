"""Each field of each form of the organisation, changed alone by HR and by one of two of the Board.

What gives a right waits for a second person, by hand from people 9, 11 and 13. A new field of a
form has no line here, and fails. A name that is fixed is ignored: its change saves nothing new.
"""

import pytest
from django.contrib.admin import site
from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.auth import get_user_model

from core.permissions import PeopleGroup
from orgchart.compiling import policy_version
from orgchart.models import (
    Agent,
    Alias,
    ContactRule,
    Group,
    MailTypeRule,
    Organisation,
    PendingChange,
    Role,
    ToolOverride,
)
from orgchart.organisation_settings import SETTINGS
from tests.admin.forms import confirm, values_of
from tests.admin.places import change_page, edit_page
from tests.company import load_company
from tests.people import join

WAITS, AT_ONCE, REFUSED = "waits", "at once", "refused"
QUOTAS = tuple(f"setting_{name}" for name, one in SETTINGS.items() if one.bound)
BOARDS = {"member_delegation", *(f"setting_{name}" for name in SETTINGS)}
"""What HR does not change (Spec: people 13)."""

AGENTS = ("leader_choice", "reports_to", "co_managers", "agent")
FIELDS = {
    Role: {
        "name": ("other", AT_ONCE),
        "title": ("Other", AT_ONCE),
        "level": ("1", REFUSED),
        "kind": ("manager", REFUSED),
        "summary": ("Other", AT_ONCE),
        "tools": (["web_search", "send_mail", "read_logs"], WAITS),
        "denied_tools": ([], WAITS),
        "offices": (["REVIEWER"], WAITS),
        "task_lead": ("on", WAITS),
        "permissions": ('{"claim_task_type": true}', WAITS),
        "files_read": ("company/\nreports/", WAITS),
        "files_write": ("agents/{agent}/\nreports/research/\ndocs/", WAITS),
        "files_deny": ("docs/", AT_ONCE),
        "files_contract": ("write", WAITS),
        "prohibitions": ("", AT_ONCE),
    },
    Group: {
        "slug": ("other", AT_ONCE),
        "name": ("Other", AT_ONCE),
        "context": ("Other", AT_ONCE),
        "member_delegation": ("on", WAITS),
        "leader_choice": ("coding_architect", WAITS),
    },
    Agent: {
        "handle": ("other", AT_ONCE),
        "title": ("Other", AT_ONCE),
        "role": ("group_leader", REFUSED),
        "reports_to": ("investment_leader", REFUSED),
        "co_managers": (["investment_leader"], WAITS),
        "group": ("investment", REFUSED),
        "name": ("builder", WAITS),
        "is_leader": ("on", REFUSED),
        "skills": ("tidy", WAITS),
        "system_prompt": ("Other words.", AT_ONCE),
        "job_description": ("Other words.", AT_ONCE),
        "contract": ("CON-OTHER", AT_ONCE),
    },
    Alias: {"alias": ("other", WAITS), "agent": ("coding_architect", WAITS)},
    MailTypeRule: {
        "name": ("other", AT_ONCE),
        "every_role": ("on", AT_ONCE),
        "senders": (["worker", "manager"], AT_ONCE),
        "issued_by": ([], AT_ONCE),
        "to_superior": (None, WAITS),
        "description": ("Other", AT_ONCE),
    },
    ContactRule: {
        "sender": ("group_leader", AT_ONCE),
        "recipient": ("group_member", AT_ONCE),
        "every_type": ("on", WAITS),
        "types": (["escalation", "info"], WAITS),
        "needs_contract": ("on", REFUSED),
        "relation": ("any", REFUSED),
    },
    ToolOverride: {
        "tool": ("send_mail", AT_ONCE),
        "role": ("group_leader", AT_ONCE),
        "agent": ("coding_leader", AT_ONCE),
        "modes": ("chat_safe", AT_ONCE),
    },
    Organisation: {
        "slug": ("other", AT_ONCE),
        "name": ("Other", AT_ONCE),
        "description": ("Other", AT_ONCE),
        "setting_enabled_modes": ("chat_safe, coding", WAITS),
        "setting_enforcement": ("off", WAITS),
        "setting_escalation_timeout": ("3600", AT_ONCE),
        "setting_ceo_timeout": ("3600", AT_ONCE),
        "setting_task_lease": ("3600", AT_ONCE),
        "setting_task_visibility": ("all", WAITS),
        "setting_approval_task_types": ("bug", AT_ONCE),
        "setting_frame_timeout": ("60", AT_ONCE),
        "setting_max_rounds": ("5", AT_ONCE),
        "setting_board_webhook": ("https://example.com/hook", AT_ONCE),
        "setting_board_email": ("board@example.com", AT_ONCE),
        "setting_repository": ("not an address", REFUSED),
        "setting_repository_push": ("after_merge", AT_ONCE),
        "setting_allow_internal_addresses": ("on", WAITS),
        **dict.fromkeys(QUOTAS, ("100", AT_ONCE)),
    },
}  # fmt: skip


@pytest.fixture
def solo(db):
    company = load_company("soloqueue")
    user = get_user_model().objects.create_user("second", is_staff=True)
    user.groups.set(join(user).groups.model.objects.filter(name=PeopleGroup.BOARD))
    return company


def rows_of(organisation):
    """The row of each table whose fields are changed."""
    agent = Agent.objects.get(organisation=organisation, handle="coding_developer")
    limit = ToolOverride.objects.create(
        organisation=organisation, agent=agent, tool="web_search", modes=[], set_by="x"
    )
    role = Role.objects.get(organisation=organisation, name="group_member")
    role.denied_tools = ["web_search"]
    role.save()
    return {
        Organisation: organisation,
        Role: role,
        Group: Group.objects.get(organisation=organisation, slug="coding"),
        Agent: agent,
        Alias: Alias.objects.filter(organisation=organisation).exclude(agent=None).first(),
        MailTypeRule: MailTypeRule.objects.get(organisation=organisation, name="escalation"),
        ContactRule: ContactRule.objects.get(organisation=organisation, sender=role),
        ToolOverride: limit,
    }


def value_of(name, value, organisation):
    """Of a field that names other rows: their keys."""
    tables = {
        **dict.fromkeys(("role", "sender", "recipient"), ("roles", "name")),
        **dict.fromkeys(
            ("leader_choice", "reports_to", "co_managers", "agent"), ("agents", "handle")
        ),
        "group": ("groups", "slug"),
    }
    if name not in tables:
        return value
    table, column = tables[name]
    names = value if isinstance(value, list) else [value]
    keys = [str(getattr(organisation, table).get(**{column: each}).pk) for each in names]
    return keys if isinstance(value, list) else keys[0]


@pytest.mark.parametrize("group", [PeopleGroup.HR, PeopleGroup.BOARD])
@pytest.mark.parametrize("model", FIELDS)
def test_a_field_that_gives_a_right_waits(solo, sign_in, model, group):
    client, organisation = sign_in(group), solo.organisation
    row = rows_of(organisation)[model]
    page = edit_page(row) if model is Agent else change_page(row)
    form, found, opened, shown = f"{model._meta.model_name}_form", {}, None, None
    for name, (value, _) in FIELDS[model].items():
        before = policy_version(organisation.id), PendingChange.objects.count()
        if opened != before[0]:  # what was refused or waits has left the form as it was
            opened, shown = before[0], client.get(page)
        changed = {name: value_of(name, value, organisation)}
        seen = client.post(page, values_of(shown, form, reason="R", **changed))
        done = confirm(client, page, seen) if b'name="_confirm"' in seen.content else None
        after = policy_version(organisation.id), PendingChange.objects.count()
        if done is None:
            found[name] = REFUSED
        elif after[1] > before[1]:
            found[name] = WAITS
        else:
            found[name] = AT_ONCE if after[0] > before[0] else REFUSED
        row.refresh_from_db()
    expected = {name: outcome for name, (_, outcome) in FIELDS[model].items()}
    if group is PeopleGroup.HR:
        expected |= dict.fromkeys(expected.keys() & BOARDS, REFUSED)
    assert found == expected


@pytest.mark.parametrize("model", FIELDS)
def test_every_field_has_a_line(model):
    page = site._registry[model]
    fields = {*flatten_fieldsets(page.edit_fieldsets)} - {"reason", "seen_version"}
    assert fields - {*page.readonly_fields} == FIELDS[model].keys()
