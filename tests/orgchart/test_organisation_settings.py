"""What an organisation's settings can hold, from files, from words of a command line, from JSON."""

import pytest

from orgchart.admin.settings_form import OrganisationForm, setting_field
from orgchart.organisation_settings import SETTINGS, checked, enabled_modes, merged, quota_of
from orgchart.policy.vocabulary import ToolMode
from orgchart.setting_parsers import BadSetting


def test_every_setting_has_a_meaning_and_a_default_it_can_hold():
    for name, setting in SETTINGS.items():
        assert setting.meaning
        assert checked({name: setting.default}) == {name: setting.default}


def test_the_defaults_are_the_closed_ones():
    values = merged({})
    assert values["enabled_modes"] == ["chat_safe"]
    assert values["enforcement"] == "enforce"
    assert values["allow_internal_addresses"] is False
    assert values["max_rounds"] == 3


@pytest.mark.parametrize(
    ("name", "given", "held"),
    [
        ("max_rounds", "7", 7),
        ("max_rounds", 1, 1),
        ("max_rounds", 100, 100),
        ("task_lease", "0", 0),
        ("escalation_timeout", 60, 60),
        ("enforcement", "warn", "warn"),
        ("enabled_modes", "coding, chat_safe", ["chat_safe", "coding"]),
        ("enabled_modes", ["chat_safe"], ["chat_safe"]),
        ("enabled_modes", ["coding", "chat_safe", "coding"], ["chat_safe", "coding"]),
        ("allow_internal_addresses", "TRUE", True),
        ("allow_internal_addresses", False, False),
        ("approval_task_types", "b,a,b", ["a", "b"]),
        ("approval_task_types", "", []),
        ("board_webhook", "https://board.example:8443/hook?x=1", None),
        ("board_webhook", "", None),
        ("board_email", "board@example.com", None),
        ("board_email", "", None),
    ],
)
def test_takes(name, given, held):
    assert checked({name: given}) == {name: given if held is None else held}


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("max_rounds", 0),
        ("max_rounds", 101),
        ("max_rounds", True),
        ("max_rounds", 1.0),
        ("max_rounds", "1.0"),
        ("max_rounds", "-1"),
        ("max_rounds", "٣"),
        ("max_rounds", "9" * 5000),
        ("max_rounds", None),
        ("max_rounds", [3]),
        ("escalation_timeout", 366 * 86_400 + 1),
        ("enforcement", "Enforce"),
        ("enforcement", ["enforce"]),
        ("enforcement", ""),
        ("enabled_modes", "coding"),
        ("enabled_modes", []),
        ("enabled_modes", ["chat_safe", "root"]),
        ("enabled_modes", {"chat_safe": 1}),
        ("enabled_modes", [["chat_safe"]]),
        ("allow_internal_addresses", 1),
        ("allow_internal_addresses", "yes"),
        ("approval_task_types", ["a b"]),
        ("approval_task_types", [1]),
        ("board_webhook", "ftp://board.example"),
        ("board_webhook", "javascript:alert(1)"),
        ("board_webhook", "https://"),
        ("board_webhook", "https://user:word@board.example/hook"),
        ("board_webhook", "https://token@board.example/hook"),
        ("board_webhook", "http://[::1"),
        ("board_webhook", "https://a b"),
        ("board_webhook", "https://a\nHost: b"),
        ("board_webhook", "https://a.example/\r\nx"),
        ("board_webhook", "https://a.example/\0"),
        ("board_webhook", "https://" + "a" * 500),
        ("board_email", "board"),
        ("board_email", "a@b.example\nBcc: all@b.example"),
        ("board_email", "a@b.example\0"),
        ("board_email", "=?utf-8?q?spy?=@b.example"),
        ("board_email", 5),
        ("no_such_setting", 1),
        ("", ""),
        ("__class__", ""),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_refuses_and_names_the_setting(name, given):
    with pytest.raises(BadSetting, match=f"^{name}: "):
        checked({name: given})


@pytest.mark.parametrize(
    "stored", [{}, {"enabled_modes": "x"}, {"enabled_modes": ["coding"]}, {"enabled_modes": None}]
)
def test_an_unreadable_mode_is_the_closed_one(stored):
    assert enabled_modes(stored) == {ToolMode.CHAT_SAFE}


def test_one_bad_value_that_is_stored_spoils_no_other():
    values = merged({"max_rounds": "x", "enforcement": "off", "gone": 1})
    assert (values["max_rounds"], values["enforcement"]) == (3, "off")
    assert "gone" not in values


def test_a_quota_stays_within_the_installations_limit(settings):
    quotas = {name: one.bound for name, one in SETTINGS.items() if one.bound}
    assert len(quotas) == 10
    for name, bound in quotas.items():
        setattr(settings, bound, 50)
        assert [quota_of(merged({name: n}), name) for n in (0, 1, 50)] == [50, 1, 50]
        with pytest.raises(BadSetting, match=f"^{name}: must be a whole number from 0 to 50$"):
            checked({name: 51})
        setattr(settings, bound, 40)
        assert quota_of(merged({name: 50}), name) == 40


def test_holds_each_of_its_choices_and_shows_them_as_such():
    chosen = {name: one for name, one in SETTINGS.items() if one.choices}
    assert chosen.keys() == {"enforcement", "task_visibility", "repository_push"}
    for name, one in chosen.items():
        assert [checked({name: value}) for value in one.choices] == [{name: v} for v in one.choices]
        field = OrganisationForm.base_fields[setting_field(name)]
        assert [value for value, _ in field.choices] == list(one.choices)
