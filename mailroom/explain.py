"""Answers to "may this agent send that?", for people, by the rules that decide it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.decision import Decision, Deny
from mailroom import rules
from mailroom.models import ContactGrant
from mailroom.rules import Channel
from orgchart.explaining import explains
from orgchart.policy.vocabulary import BOARD


@explains("mail")
def may_mail(facts: Mapping[str, Any]) -> Decision:
    """Whether `agent` may send `type` to `to`, under `contract` if one is named."""
    policy, sender = facts["policy"], facts["agent"]
    if facts["to"] == BOARD:
        return rules.can_mail_board(sender, facts["type"], policy)
    recipient = rules.find_recipient(facts["to"], policy)
    if isinstance(recipient, Deny):
        return recipient
    channels = [
        Channel(g.contract_ref, g.sender_id, g.recipient_id, frozenset(g.types))
        for g in ContactGrant.objects.filter(
            organisation_id=policy.organisation_id, contract_ref=facts["contract"], closed_at=None
        )
    ]
    return rules.can_mail(sender, recipient, facts["type"], policy, channels)
