"""Board → CEO → IT Manager → Backend → report → QA → passed → CEO → Board (Spec: contracts 2)."""

CODE = {
    "mode": "coding",
    "workspace_scope": ["src/search/"],
    "assigned_branch": "feat/indexer",
}


class TestWork:
    def test_goes_down_step_by_step_and_its_report_comes_back_to_the_board(self, stage):
        order = stage.order()
        notice = stage.inbox("ceo", type="contract")[0]
        assert (notice["from"], notice["contract_ref"]) == ("board", order)
        stage.done("ceo", "accept_contract", contract_id=order)
        to_it = stage.issued_and_accepted("ceo", "it_manager")
        code = stage.issued_and_accepted("it_manager", "backend_worker", **CODE)
        stage.done(
            "backend_worker",
            "submit_report",
            contract_id=code,
            kind="completion",
            title="Done",
            body="740 ms",
        )
        verdict = stage.call(
            "qa_worker", "write_verdict", contract_id=code, verdict="PASS", evidence="212 passed"
        ).result
        closed = stage.call(
            "it_manager", "close_contract", contract_id=code, outcome="passed", reason="QA passed"
        ).result
        assert closed["state"] == "passed"
        read = stage.call("it_manager", "read_mail", mail_id=verdict["mail_id"]).result
        assert (read["from"], read["type"], read["contract_ref"]) == ("qa_worker", "verdict", code)
        mail = {"type": "report", "subject": "Done", "body": "740 ms"}
        stage.done("it_manager", "send_mail", to="ceo", contract_ref=to_it, submits=True, **mail)
        done = stage.call(
            "ceo", "close_contract", contract_id=to_it, outcome="passed", reason="Numbers hold"
        )
        assert done.result["state"] == "passed"
        report = stage.call(
            "ceo", "send_mail", to="board", contract_ref=order, submits=True, **mail
        )
        assert report.result["status"] == "delivered"
        assert stage.close_as_board(order, "passed") == "passed"

    def test_turns_the_session_to_coding_from_acceptance_until_the_report(self, stage):
        code = stage.issue("it_manager", "backend_worker", **CODE)
        write = {"path": "src/search/index.py", "content": "x"}
        assert stage.mode("backend_worker") == "chat_safe"
        assert stage.call("backend_worker", "write_file", **write).code == "MODE_DENIED"
        stage.done("backend_worker", "accept_contract", contract_id=code)
        assert stage.mode("backend_worker") == "coding"
        assert stage.call("backend_worker", "write_file", **write).status == 200
        outside = {"path": "src/billing/pay.py", "content": "x"}
        assert stage.call("backend_worker", "write_file", **outside).code == "SCOPE_DENIED"
        assert stage.call("backend_worker", "git_push", branch="main").code == "BRANCH_DENIED"
        stage.done(
            "backend_worker",
            "submit_report",
            contract_id=code,
            kind="completion",
            title="D",
            body="",
        )
        assert stage.mode("backend_worker") == "chat_safe"
        assert stage.call("backend_worker", "write_file", **write).code == "MODE_DENIED"

    def test_that_touches_code_never_passes_around_qa(self, stage):
        code = stage.issued_and_accepted("it_manager", "backend_worker", **CODE)
        end = {"contract_id": code, "reason": "Looks good"}
        report = {"contract_id": code, "kind": "completion", "title": "Done", "body": ""}
        stage.done("backend_worker", "submit_report", **report)
        passed = stage.call("it_manager", "close_contract", outcome="passed", **end)
        assert passed.code == "APPROVAL_REQUIRED"
        stage.done(
            "qa_worker", "write_verdict", contract_id=code, verdict="FAIL", evidence="1 failed"
        )
        passed = stage.call("it_manager", "close_contract", outcome="passed", **end)
        assert passed.code == "APPROVAL_REQUIRED"
        failed = stage.call("it_manager", "close_contract", outcome="failed", **end)
        assert failed.result["state"] == "failed"

    def test_is_closed_by_its_issuer_and_nobody_else(self, stage):
        contract = stage.issued_and_accepted("it_manager", "backend_worker")
        end = {"contract_id": contract, "outcome": "cancelled", "reason": "Mine"}
        assert stage.call("backend_worker", "close_contract", **end).code == "NOT_YOURS"
        assert stage.call("ceo", "close_contract", **end).code == "NOT_YOURS"  # it reads it
        for stranger in ("frontend_worker", "qa_worker", "product_manager"):
            assert stage.call(stranger, "close_contract", **end).code == "NOT_FOUND"
        assert stage.call("it_manager", "close_contract", **end).result["state"] == "cancelled"

    def test_never_flows_upward_sideways_or_to_its_own_issuer(self, stage):
        paper = {"title": "x", "body": "x"}
        for to in (
            "ceo",
            "hr_manager",
            "product_manager",
            "it_manager",
            "research_worker",
            "board",
        ):
            answer = stage.call("it_manager", "create_contract", to=to, **paper)
            assert answer.status == 403, (to, answer.body)
        for to in ("backend_worker", "ceo", "board"):
            assert stage.call("ceo", "generate_contract", to=to, **paper).status == 403, to
        worker = stage.call("backend_worker", "create_contract", to="qa_worker", **paper)
        assert worker.code == "TOOL_NOT_BOUND"
        open_ones = stage.done("it_manager", "list_contracts", state="pending")["contracts"]
        assert open_ones == []

    def test_is_accepted_from_the_version_that_was_read(self, stage):
        contract = stage.issue("it_manager", "backend_worker")
        accept = {"contract_id": contract}
        stale = stage.call("backend_worker", "accept_contract", **accept, expected_version=7)
        assert (stale.status, stale.code) == (409, "VERSION_MISMATCH")
        now = stage.call("backend_worker", "accept_contract", **accept, expected_version=1)
        assert now.result == {**now.result, "state": "in_progress", "version": 2}
