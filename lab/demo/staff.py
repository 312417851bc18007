"""HR hires and lets go, each under the CEO's contract (Spec: organisation 32)."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from lab.demo.day import Day
from lab.demo.marks import MARK


def hr_hires(day: Day) -> None:
    """Refused without a contract, done under it, and an inactive colleague gets no mail."""
    handle = f"backend_{timezone.now():%y%m%d%H%M%S}"
    hire: dict[str, Any] = {
        "handle": handle,
        "role": "backend_worker",
        "title": "Backend Worker for one day",
        "job_description": "Help the backend worker today.",
    }
    day.ask("hr_manager", "create_agent_jd", **hire, expect="AUTHORISATION_REQUIRED")
    contract = day.ask(
        "ceo",
        "generate_contract",
        to="hr_manager",
        kind="org_change",
        changes=[{"act": act, "subject": handle} for act in ("hire", "deactivate")],
        title=f"{MARK} Hire a backend worker",
        body="One more pair of hands, for today.",
    )["contract_id"]
    day.ask("hr_manager", "create_agent_jd", **hire, expect="AUTHORISATION_REQUIRED",
            note="issued, not yet accepted")  # fmt: skip
    day.ask("hr_manager", "accept_contract", contract_id=contract)
    hired = day.ask("hr_manager", "create_agent_jd", **hire)
    day.check("the new colleague is there", holds=hired.get("agent") == handle, shown=handle)
    day.hire(handle)
    day.narrator.person(day.board.username, f"gives {handle} a key", "nxs_… (shown once)")
    day.judge(handle, "sessions.open", day.agents[handle].begin())
    hello: dict[str, Any] = {"type": "info", "subject": "Hello", "body": "Good to be here."}
    day.ask(handle, "send_mail", to="it_manager", **hello)
    day.ask(handle, "send_mail", to="ceo", **hello, expect="CONTACT_DENIED")
    day.ask("it_manager", "send_mail", to=handle, **hello)
    day.ask("hr_manager", "deactivate_agent", agent=handle, reason="The day is over.")
    day.ask(handle, "current_time", expect="UNAUTHENTICATED", note="its key ended with it")
    day.ask("it_manager", "send_mail", to=handle, **hello, expect="RECIPIENT_INACTIVE")
    told = day.inbox("ceo", from_="system")
    day.check("the sender's superior was told", holds=any(handle in m["subject"] for m in told))
    day.ask("hr_manager", "send_mail", to="ceo", type="report", contract_ref=contract,
            submits=True, subject="Hired and gone", body=f"{handle} came and went.")  # fmt: skip
    day.ask("ceo", "close_contract", contract_id=contract, outcome="passed", reason="As ordered.")
    late: dict[str, Any] = {**hire, "handle": f"{handle}_b"}
    day.ask("hr_manager", "create_agent_jd", **late, expect="AUTHORISATION_REQUIRED",
            note="the authorisation is over")  # fmt: skip
