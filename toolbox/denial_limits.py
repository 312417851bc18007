"""How many refusals of an agent are recorded: few, where its organisation has no room left."""

from __future__ import annotations

import time
from datetime import datetime

from core.decision import Denied
from orgchart.policy.compiled import Policy
from toolbox.quotas import charging

EVENT_BYTES = 512
RECORD_INTERVAL = 60.0
"""Seconds between two such events of an agent whose organisation has no room, in one process."""

_last_recorded: dict[int, float] = {}
"""The time of the last event by the agent's id."""


def may_record(*, agent: int, policy: Policy, now: datetime) -> bool:
    """Count one event of an agent; False where it has to be left out (Spec: ledger 3)."""
    try:
        charging.charge(agent=agent, policy=policy, size=EVENT_BYTES, now=now)
    except Denied:
        passed = time.monotonic()
        if passed - _last_recorded.get(agent, -RECORD_INTERVAL) < RECORD_INTERVAL:
            return False
        _last_recorded[agent] = passed
    return True
