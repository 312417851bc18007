"""A pack over a live organisation changes it without losing anybody."""

import pytest
from django.core.management import call_command

from core.actors import System
from core.decision import Code, Denied
from ledger.models import Event
from orgchart import models
from orgchart.compiling import compile_policy
from orgchart.keys import issue_key
from orgchart.models import ApiKey, Organisation
from orgchart.packs.checking import sound_pack
from orgchart.packs.pack import policy_of
from orgchart.policy.protected import with_protected
from orgchart.policy.vocabulary import ToolMode
from orgchart.policy_cache import current_policy
from orgchart.services import change_policy, set_settings
from orgchart.staffing import activate_agent, deactivate_agent
from orgchart.tool_restrictions import set_tool_restriction
from tests.orgchart.world import (
    ACME,
    NOW,
    PACKS,
    edited,
    load,
    person,
    plain,
    write_pack,
)

pytestmark = pytest.mark.django_db


FEW = """\
types: {escalation: {senders: [manager, worker], to: superior}}
contacts:
  - {from: lead, to: boss}
  - {from: hand, to: lead, relation: own}
"""


def events():
    return list(Event.objects.order_by("seq").values_list("action", flat=True))


class TestLoadingOverALiveOrganisation:
    def test_keeps_ids_keys_and_names(self, pack, acme):
        before = dict(acme.agents.values_list("handle", "id"))
        hand = acme.agents.get(handle="hand_one")
        issue_key(agent=hand, caller=person(acme), now=NOW)
        write_pack(pack, edited("agents/hand_one.yaml", ("First Hand", "Right Hand")))
        change = load(pack)
        assert change.after.version == 2
        assert dict(acme.agents.values_list("handle", "id")) == before
        assert change.after.agents["hand_one"].title == "Right Hand"
        assert ApiKey.objects.get(agent=hand).revoked_at is None

    def test_says_what_became_allowed_and_forbidden(self, pack, acme):
        write_pack(
            pack,
            edited(
                "mail-protocol.yaml", ("types: [report, escalation]", "types: [escalation, info]")
            ),
        )
        difference = load(pack).difference
        assert difference.allowed == (
            "hand_one may send info to lead",
            "hand_one may send info to other_lead",
            "hand_two may send info to other_lead",
        )
        assert difference.forbidden == (
            "hand_one may send report to lead",
            "hand_one may send report to other_lead",
            "hand_two may send report to other_lead",
        )

    def test_deactivates_who_is_gone_and_keeps_their_keys(self, pack, acme):
        issue_key(agent=acme.agents.get(handle="hand_two"), caller=person(acme), now=NOW)
        (pack / "agents/hand_two.yaml").unlink()
        policy = load(pack).after
        assert not policy.agents["hand_two"].active
        assert ApiKey.objects.get().revoked_at is None

    def test_takes_back_who_returns(self, pack, acme):
        number = acme.agents.get(handle="hand_two").id
        (pack / "agents/hand_two.yaml").unlink()
        load(pack)
        write_pack(pack)
        policy = load(pack).after
        assert policy.agents["hand_two"].active
        assert policy.agents["hand_two"].id == number
        assert plain(policy) == plain(policy_of(sound_pack(pack)))

    def test_activates_nobody_that_a_person_deactivated(self, pack, acme, capsys):
        deactivate_agent(handle="hand_two", caller=person(acme), reason="Left.", now=NOW)
        call_command("org", "diff", "acme", str(pack))
        assert "hand_two stays deactivated" in capsys.readouterr().out
        write_pack(
            pack,
            {"agents/hand_two.yaml": ACME["agents/hand_two.yaml"] + "job_description: Left.\n"},
        )
        assert not load(pack).after.agents["hand_two"].active
        call_command("org", "load", str(pack))
        said = capsys.readouterr().out
        assert "hand_two stays deactivated" in said
        assert "unchanged" in said
        activate_agent(
            handle="hand_two",
            caller=System(name="tests", organisation_id=acme.id),
            reason="Back.",
            now=NOW,
        )
        assert load(pack).after.agents["hand_two"].active
        call_command("org", "load", str(pack))
        assert "stays deactivated" not in capsys.readouterr().out

    def test_changes_nothing_when_who_is_gone_is_gone_already(self, pack, acme):
        (pack / "agents/hand_two.yaml").unlink()
        load(pack)
        assert not load(pack).changed

    def test_lets_another_take_the_place_of_who_is_gone(self, pack, acme):
        write_pack(
            pack,
            {
                "agents/lead.yaml": None,
                "agents/new_lead.yaml": ACME["agents/lead.yaml"],
                "agents/hand_one.yaml": ACME["agents/hand_one.yaml"].replace(
                    "reports_to: lead", "reports_to: new_lead"
                ),
            },
        )
        policy = load(pack).after
        assert policy.resolve("crew.leader") == policy.agents["new_lead"]
        assert not policy.agents["lead"].active
        assert policy.agents["lead"].address == "lead"
        assert not load(pack).changed

    def test_keeps_the_place_of_who_is_gone_while_nobody_takes_it(self, pack, acme):
        (pack / "agents/hand_one.yaml").unlink()
        policy = load(pack).after
        assert policy.resolve("crew.one") == policy.agents["hand_one"]

    def test_exchanges_places_and_leaders_within_a_group(self, pack, acme):
        lead = ACME["agents/lead.yaml"]
        member = "role: lead\nreports_to: boss\ngroup: crew\nname: two\nis_leader: false\n"
        write_pack(
            pack,
            {
                "agents/lead.yaml": member,
                "agents/other_lead.yaml": lead,
            },
        )
        load(pack)
        write_pack(
            pack,
            {
                "agents/lead.yaml": lead,
                "agents/other_lead.yaml": member,
            },
        )
        policy = load(pack).after
        assert policy.resolve("crew.leader") == policy.agents["lead"]
        assert policy.resolve("crew.two") == policy.agents["other_lead"]

    def test_takes_a_role_away_that_nobody_holds(self, pack, acme):
        roles = ACME["roles.yaml"] + "  spare: {title: Spare, level: 5, kind: worker}\n"
        write_pack(pack, {"roles.yaml": roles})
        assert "spare" in load(pack).after.roles
        write_pack(pack)
        assert "spare" not in load(pack).after.roles

    def test_takes_the_powers_of_a_role_that_only_the_deactivated_hold(self, pack, acme):
        roles = ACME["roles.yaml"] + (
            "  spare: {title: S, level: 5, kind: worker, tools: [read_file], "
            "files: {write: [docs/], deny: [.env], contract: write}, task_lead: true}\n"
        )
        extra = {
            "roles.yaml": roles.replace("tools: [read_file]", "tools: [read_file, escalate]"),
            "agents/spare_one.yaml": "role: spare\nreports_to: lead\n",
        } | edited(
            "mail-protocol.yaml",
            ("senders: [lead, hand], to", "senders: [manager, worker], to"),
            ("board:", "  - {from: spare, to: lead, relation: own}\nboard:"),
        )
        write_pack(pack, extra)
        load(pack)
        write_pack(pack, {"agents/spare_one.yaml": None})
        policy = load(pack).after
        spare = policy.roles["spare"]
        assert (spare.tools, spare.files.write, spare.task_lead) == (frozenset(), (), False)
        assert spare.files.deny == with_protected((".env",))
        assert not policy.agents["spare_one"].active
        assert not load(pack).changed

    def test_takes_a_group_away_with_the_places_in_it(self, pack, acme):
        for handle in ("lead", "hand_one"):
            text = ACME[f"agents/{handle}.yaml"]
            kept = [
                line
                for line in text.splitlines()
                if not line.startswith(("group", "name", "is_leader"))
            ]
            (pack / f"agents/{handle}.yaml").write_text("\n".join(kept) + "\n")
        (pack / "groups/crew.yaml").unlink()
        policy = load(pack).after
        assert policy.groups == {}
        assert policy.agents["hand_one"].address == "hand_one"

    def test_takes_aliases_types_and_contacts_away(self, pack, acme):
        write_pack(
            pack,
            edited("organisation.yaml", ("aliases:\n  chief: boss\n", "aliases: {}\n"))
            | {"mail-protocol.yaml": FEW},
        )
        policy = load(pack).after
        assert policy.resolve("chief") is None
        assert set(policy.mail_types) == {"escalation"}
        assert set(policy.contacts) == {("lead", "boss"), ("hand", "lead")}

    def test_leaves_settings_alone_even_those_the_pack_states(self, pack, acme):
        set_settings(
            organisation=acme,
            values={"max_rounds": 7, "enforcement": "warn"},
            caller=person(acme),
            now=NOW,
        )
        write_pack(pack, edited("organisation.yaml", ("max_rounds: 5", "max_rounds: 9")))
        load(pack)
        policy = current_policy(acme.id)
        assert (policy.settings["max_rounds"], policy.settings["enforcement"]) == (7, "warn")

    def test_leaves_tightenings_of_people_alone(self, pack, acme):
        set_tool_restriction(
            organisation_id=acme.id,
            tool="read_file",
            modes=frozenset(),
            tool_modes=frozenset(ToolMode),
            caller=person(acme),
            now=NOW,
            reason="for now",
            agent=acme.agents.get(handle="hand_one"),
        )
        write_pack(pack, edited("agents/hand_one.yaml", ("First Hand", "Right Hand")))
        policy = load(pack).after
        assert policy.tool_restrictions[("agent:hand_one", "read_file")] == frozenset()
        assert policy.tool_restrictions[("role:lead", "web_search")] == frozenset()

    def test_narrows_a_tightening_and_never_widens_one(self, pack, acme):
        loose = edited("organisation.yaml", ("modes: []", "modes: [chat_safe, coding]"))
        write_pack(pack, loose)
        assert not load(pack).changed
        models.ToolOverride.objects.update(modes=["chat_safe", "coding"])
        write_pack(pack, edited("organisation.yaml", ("modes: []", "modes: [chat_safe]")))
        policy = load(pack).after
        assert policy.tool_restrictions[("role:lead", "web_search")] == {ToolMode.CHAT_SAFE}

    def test_is_refused_whole_where_it_breaks_with_what_lives(self, pack, acme):
        (pack / "agents/hand_two.yaml").unlink()
        load(pack)
        write_pack(
            pack,
            {
                "agents/hand_two.yaml": None,
                "agents/crew.one.yaml": "role: hand\nreports_to: lead\n",
                "agents/hand_one.yaml": ACME["agents/hand_one.yaml"]
                .replace("group: crew\n", "")
                .replace("name: one\n", ""),
            },
        )
        assert load(pack).changed
        write_pack(pack, {"agents/crew.one.yaml": None, "agents/hand_two.yaml": None})
        with pytest.raises(Denied) as refused:
            load(pack)
        assert refused.value.deny.code is Code.INVALID_PARAMS
        assert "crew.one" in refused.value.deny.message
        assert current_policy(acme.id).agents["crew.one"].active

    def test_touches_no_other_organisation(self, pack, acme):
        load(PACKS / "soloqueue")
        other = Organisation.objects.get(slug="soloqueue")
        before = compile_policy(other.id)
        write_pack(pack, edited("roles.yaml", ("level: 3", "level: 4"), ("level: 2", "level: 3")))
        load(pack)
        assert compile_policy(other.id) == before


def test_a_change_by_people_is_undone_by_the_next_load(pack, acme):
    """A pack is the whole truth of roles, agents and rules: what it does not say is taken away."""
    change_policy(
        organisation_id=acme.id,
        apply=lambda row: row.roles.filter(name="hand").update(tools=["send_mail"]) and None,
        caller=person(acme),
        action="role.changed",
        now=NOW,
    )
    assert load(pack).after.roles["hand"].tools == {
        "send_mail",
        "escalate",
        "read_file",
        "write_file",
        "git_commit",
    }
