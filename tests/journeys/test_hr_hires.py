"""HR changes the organisation under the CEO's contract, and only then (seed 000 §1.4, §4.5)."""

HIRE = {
    "handle": "backend_two",
    "role": "backend_worker",
    "title": "Second backend worker",
    "job_description": "Helps the first.",
}
HELLO = {"type": "info", "subject": "Hello", "body": "A word."}


class TestHiring:
    def test_needs_the_ceos_contract_in_progress(self, stage):
        assert stage.call("hr_manager", "create_agent_jd", **HIRE).code == "AUTHORISATION_REQUIRED"
        plain = stage.issued_and_accepted("ceo", "hr_manager")
        assert stage.call("hr_manager", "create_agent_jd", **HIRE).code == "AUTHORISATION_REQUIRED"
        contract = stage.issue("ceo", "hr_manager", kind="org_change")
        assert stage.call("hr_manager", "create_agent_jd", **HIRE).code == "AUTHORISATION_REQUIRED"
        stage.done("hr_manager", "accept_contract", contract_id=contract)
        assert stage.call("hr_manager", "create_agent_jd", **HIRE).result["agent"] == "backend_two"
        for paper in (contract, plain):
            stage.done("ceo", "close_contract", contract_id=paper, outcome="passed", reason="Hired")
        later = {**HIRE, "handle": "backend_three"}
        assert stage.call("hr_manager", "create_agent_jd", **later).code == "AUTHORISATION_REQUIRED"

    def test_gives_the_new_colleague_its_roles_contacts_and_no_more(self, stage):
        stage.issued_and_accepted("ceo", "hr_manager", kind="org_change")
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
        stage.issued_and_accepted("ceo", "hr_manager", kind="org_change")
        work = stage.issued_and_accepted("it_manager", "devops_worker")
        stage.company.key("devops_worker")
        gone = stage.call("hr_manager", "deactivate_agent", agent="devops_worker", reason="Moved")
        assert gone.result["handed_to"] == "it_manager"
        assert work in str(gone.result["holds"])
        assert stage.call("devops_worker", "current_time").code == "UNAUTHENTICATED"
        answer = stage.call("it_manager", "send_mail", to="devops_worker", **HELLO)
        assert answer.code == "RECIPIENT_INACTIVE"
        assert any("devops_worker" in m["subject"] for m in stage.inbox("ceo", from_="system"))
