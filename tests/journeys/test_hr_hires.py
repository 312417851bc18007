"""HR changes the organisation under the CEO's contract, and only then (Spec: organisation 32)."""

import pytest

HIRE = {
    "handle": "backend_two",
    "role": "backend_worker",
    "title": "Second backend worker",
    "job_description": "Helps the first.",
}
HELLO = {"type": "info", "subject": "Hello", "body": "A word."}


def may(act: str, subject: str) -> dict[str, object]:
    """The terms of a contract that lets HR do this once."""
    return {"kind": "org_change", "changes": [{"act": act, "subject": subject}]}


def hiring(handle: str) -> dict[str, object]:
    """A contract of the CEO that allows one hire."""
    return may("hire", handle)


class TestHiring:
    def test_needs_the_ceos_contract_in_progress(self, stage):
        assert stage.call("hr_manager", "create_agent_jd", **HIRE).code == "AUTHORISATION_REQUIRED"
        plain = stage.issued_and_accepted("ceo", "hr_manager")
        assert stage.call("hr_manager", "create_agent_jd", **HIRE).code == "AUTHORISATION_REQUIRED"
        contract = stage.issue("ceo", "hr_manager", **may("hire", "backend_two"))
        assert stage.call("hr_manager", "create_agent_jd", **HIRE).code == "AUTHORISATION_REQUIRED"
        stage.done("hr_manager", "accept_contract", contract_id=contract)
        assert stage.call("hr_manager", "create_agent_jd", **HIRE).result["agent"] == "backend_two"
        for paper in (contract, plain):
            stage.done("hr_manager", "send_mail", to="ceo", type="report", subject="Hired",
                       body="Done.", contract_ref=paper, submits=True)  # fmt: skip
            stage.done("ceo", "close_contract", contract_id=paper, outcome="passed", reason="Hired")
        later = {**HIRE, "handle": "backend_three"}
        assert stage.call("hr_manager", "create_agent_jd", **later).code == "AUTHORISATION_REQUIRED"

    def test_gives_the_new_colleague_its_roles_contacts_and_no_more(self, stage):
        stage.issued_and_accepted("ceo", "hr_manager", **may("hire", "backend_new"))
        stage.done("hr_manager", "create_agent_jd", **{**HIRE, "handle": "backend_new"})
        assert stage.call("backend_new", "send_mail", to="it_manager", **HELLO).code == "OK"
        assert stage.call("it_manager", "send_mail", to="backend_new", **HELLO).code == "OK"
        for to in ("ceo", "backend_worker", "hr_manager"):
            answer = stage.call("backend_new", "send_mail", to=to, **HELLO)
            assert answer.code == "CONTACT_DENIED", to
        mine = {t["name"] for t in stage.get("backend_new", "/api/v1/tools")["tools"]}
        theirs = {t["name"] for t in stage.get("backend_worker", "/api/v1/tools")["tools"]}
        assert mine == theirs

    def test_belongs_to_nobody_else(self, stage):
        for who in ("ceo", "it_manager", "product_manager", "backend_worker"):
            assert stage.call(who, "create_agent_jd", **HIRE).code == "TOOL_NOT_BOUND", who


class TestLeaving:
    def test_ends_key_and_mail_and_hands_over_what_was_open(self, stage):
        stage.issued_and_accepted("ceo", "hr_manager", **may("deactivate", "devops_worker"))
        work = stage.issued_and_accepted("it_manager", "devops_worker")
        stage.company.key("devops_worker")
        gone = stage.call("hr_manager", "deactivate_agent", agent="devops_worker", reason="Moved")
        assert gone.result["handed_to"] == "it_manager"
        assert work not in str(gone.result["holds"])  # HR reads no work of the IT department
        told = [m for m in stage.inbox("it_manager", from_="system") if "devops" in m["subject"]]
        bodies = [
            stage.done("it_manager", "read_mail", mail_id=mail["mail_id"])["body"] for mail in told
        ]
        assert any(work in body for body in bodies)  # two notices of one moment, in either order
        assert stage.call("devops_worker", "current_time").code == "UNAUTHENTICATED"
        answer = stage.call("it_manager", "send_mail", to="devops_worker", **HELLO)
        assert answer.code == "RECIPIENT_INACTIVE"
        assert any("devops_worker" in m["subject"] for m in stage.inbox("ceo", from_="system"))


class TestANewKind:
    """Spec: organisation 4 and 19: it works on its first day, and reaches its manager alone."""

    @pytest.mark.parametrize(
        ("handle", "role", "manager"),
        [
            ("recruiter", "hr_worker", "hr_manager"),
            ("sourcer", "sourcer", "hr_manager"),
            ("sec_analyst", "sec_analyst", "it_manager"),
            ("designer", "designer", "product_manager"),
            ("exec_assistant", "exec_assistant", "ceo"),
        ],
    )
    def test_can_work_on_its_first_day(self, stage, handle, role, manager):
        stage.issued_and_accepted("ceo", "hr_manager", **hiring(handle))
        new = {**HIRE, "handle": handle, "role": role, "reports_to": manager}
        assert stage.call("hr_manager", "create_agent_jd", **new).result["agent"] == handle
        for kind in ("report", "info", "question", "escalation"):
            mail = {**HELLO, "type": kind}
            assert stage.call(handle, "send_mail", to=manager, **mail).code == "OK", kind
        assert stage.call(handle, "escalate", subject="Help", body="b").result["to"] == manager
        assert stage.call(manager, "send_mail", to=handle, **HELLO).code == "OK"
        assert stage.issued_and_accepted(manager, handle)
        for other in {"ceo", "it_manager", "hr_manager", "backend_worker"} - {manager}:
            assert stage.call(handle, "send_mail", to=other, **HELLO).code == "CONTACT_DENIED"
        for tool in ("write_file", "create_contract", "write_verdict", "create_agent_jd"):
            assert stage.call(handle, tool).code == "TOOL_NOT_BOUND"

    @pytest.mark.parametrize(
        ("changes", "code"),
        [
            ({"handle": "designer", "role": "desinger", "reports_to": "ceo"}, "INVALID_PARAMS"),
            ({"handle": "designer", "role": "designer"}, "INVALID_PARAMS"),
            ({"handle": "worker", "role": "worker", "reports_to": "ceo"}, "INVALID_PARAMS"),
            ({"handle": "pm", "role": "pm", "reports_to": "ceo"}, "INVALID_PARAMS"),
            (
                {"handle": "designer", "role": "designer", "reports_to": "qa_worker"},
                "INVALID_PARAMS",
            ),
        ],
    )
    def test_is_refused_without_a_name_or_a_manager_of_its_own(self, stage, changes, code):
        if changes["handle"] not in stage.company.policy.names:  # no contract names a taken one
            stage.issued_and_accepted("ceo", "hr_manager", **hiring(changes["handle"]))
        roles = set(stage.company.policy.roles)
        assert stage.call("hr_manager", "create_agent_jd", **{**HIRE, **changes}).code == code
        assert set(stage.company.policy.roles) == roles
