"""Workers, QA and their manager work on few branches in any order; what reaches the main branch."""

from django.test import override_settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from proofs.rehearsing import RehearsedDay
from tests.workspace.git.world import Hands, a_root
from workspace.git.repositories import ensure_repository

WORKERS = ("backend_worker", "frontend_worker")
LEAD, JUDGE = "it_manager", "qa_worker"
SCOPES = ("src/a/", "src/b/")
BRANCHES = ("feat/x", "feat/y")
OPEN = ("in_progress", "review")

places = st.integers(0, 9)
readers = st.sampled_from((*WORKERS, JUDGE))
scopes = st.sampled_from(SCOPES)
findings = st.sampled_from(["PASS", "FAIL"])
workers = st.sampled_from(WORKERS)
branches = st.sampled_from(BRANCHES)


class Deliveries(RehearsedDay):
    """A day of one repository. What each contract is and what QA found, as the answers said it.

    `makers` are the agents that worked on each branch.
    """

    def __init__(self):
        super().__init__()
        root = self.around.enter_context(a_root())
        self.around.enter_context(override_settings(WORKSPACE_ROOT=root))
        self.hands = Hands(self.here)
        ensure_repository(
            organisation=self.here.organisation, caller=self.here.system, now=self.here.now()
        )
        self.hands.lead()
        self.hands.hire(JUDGE, assigned_branch="", workspace_scope=[])
        for handle in (*WORKERS, JUDGE):
            self.hands.tree(handle)
        self.contracts, self.texts = [], 0
        self.makers = {branch: set() for branch in BRANCHES}
        self.main = self.hands.git("rev-parse", "refs/heads/main")

    def pick(self, place, *states):
        found = [one for one in self.contracts if one["state"] in states]
        return found[place % len(found)] if found else None

    def as_worker(self, one, tool, **params):
        """A call in the session of this contract."""
        return self.here.call(one["to"], tool, {"X-Nexus-Session": one["session"]}, **params)

    @initialize(first=workers, second=workers, branch=branches, finding=findings)
    def have_two_done_on_one_branch(self, first, second, branch, finding):
        self.have_it_done(first, SCOPES[0], branch, finding)
        self.have_it_done(second, SCOPES[1], branch, "PASS")

    @rule(to=workers, scope=scopes, branch=branches, finding=findings)
    def have_it_done(self, to, scope, branch, finding):
        """A whole contract: the next one may have the same branch."""
        one = self.issue(to, scope, branch)
        if one is not None:
            self.finish_one(one, finding, None)

    @rule(to=workers, scope=scopes, branch=branches)
    def begin(self, to, scope, branch):
        self.issue(to, scope, branch)

    def issue(self, to, scope, branch):
        terms = {"workspace_scope": [scope], "assigned_branch": branch, "mode": "coding"}
        made = self.here.call(LEAD, "create_contract", to=to, title="T", body="B", **terms)
        opened = self.here.post("/api/v1/sessions", {}, to)
        if made.code != "OK" or opened.status != 201:
            return None
        one = {
            "id": made.result["contract_id"], "to": to, "scope": scope, "branch": branch,
            "session": opened.body["id"], "state": "in_progress", "found": set(),
        }  # fmt: skip
        assert self.as_worker(one, "accept_contract", contract_id=one["id"]).code == "OK"
        self.contracts.append(one)
        self.makers[branch].add(to)
        self.write(one, scope, 0, whole=False)
        return one

    @rule(place=places, scope=scopes, file=st.integers(0, 1), whole=st.booleans())
    def work(self, place, scope, file, whole):
        """Write a file, perhaps outside of the contract's scope, commit it or its folder, push."""
        one = self.pick(place, "in_progress")
        if one is not None:
            self.write(one, scope, file, whole=whole)

    def write(self, one, scope, file, *, whole):
        self.texts += 1
        path, text = f"{scope}{file}.py", f"x = {self.texts}\n"
        self.as_worker(one, "git_branch", name=one["branch"])
        wrote = self.as_worker(one, "write_file", path=path, content=text)
        assert wrote.code != "OK" or scope == one["scope"]
        paths = [scope if whole else path]
        self.as_worker(one, "git_commit", message="Work", paths=paths)
        self.as_worker(one, "git_push", branch=one["branch"])

    @rule(place=places)
    def take_in_main(self, place):
        one = self.pick(place, "in_progress")
        if one is not None:
            self.as_worker(one, "git_branch", name=one["branch"], take_in_main=True)

    @rule(place=places, finding=findings, outcome=st.sampled_from(["rework", "cancelled", None]))
    def finish(self, place, finding, outcome):
        """Submit, judge and merge it; then it is closed as it was judged, or in another way."""
        one = self.pick(place, "in_progress")
        if one is not None:
            self.finish_one(one, finding, outcome)

    def finish_one(self, one, finding, outcome):
        self.submit(one)
        self.here.call(JUDGE, "read_file", path=f"{one['scope']}0.py")
        self.judge(one, finding)
        self.merge(one)
        self.close(one, outcome or {"PASS": "passed", "FAIL": "failed"}[finding])

    @rule(place=places, finding=findings)
    def leave_in_review(self, place, finding):
        one = self.pick(place, "in_progress")
        if one is not None:
            self.submit(one)
            self.judge(one, finding)

    def submit(self, one):
        params = {"kind": "completion", "title": "T", "body": "B"}
        done = self.as_worker(one, "submit_report", contract_id=one["id"], **params)
        if done.code == "OK":
            one |= {"state": "review", "found": set()}
            self.did["submit"] += 1

    def judge(self, one, finding, judge=JUDGE):
        params = {"contract_id": one["id"], "verdict": finding, "evidence": "E"}
        if self.here.call(judge, "write_verdict", **params).code == "OK":
            assert judge not in self.makers[one["branch"]]
            one["found"].add(finding)
            self.did[f"{finding} by {judge}"] += 1

    @rule(place=places, outcome=st.sampled_from(["passed", "failed", "rework", "cancelled"]))
    def end(self, place, outcome):
        one = self.pick(place, *OPEN)
        if one is not None:
            self.close(one, outcome)

    def close(self, one, outcome):
        params = {"contract_id": one["id"], "outcome": outcome, "reason": "R"}
        if self.here.call(LEAD, "close_contract", **params).code == "OK":
            assert outcome != "passed" or one["found"] == {"PASS"}
            self.did[outcome] += 1
            one["state"] = "in_progress" if outcome == "rework" else outcome

    @rule(place=places)
    def merge_anything(self, place):
        one = self.pick(place, "review", "passed", "failed", "in_progress", "cancelled")
        if one is not None:
            self.merge(one)

    def merge(self, one):
        params = {"contract_id": one["id"], "branch": one["branch"], "comment": "C"}
        done = self.here.call(LEAD, "review_pr", approve=True, **params)
        if done.code != "OK":
            return
        assert (one["found"], one["state"] in ("review", "passed")) == ({"PASS"}, True)
        before, self.main = self.main, self.hands.git("rev-parse", "refs/heads/main")
        changed = self.hands.git("diff", "--name-only", before, self.main).split()
        self.did["merge"] += bool(changed)
        assert all(path.startswith(one["scope"]) for path in changed), (one, changed)

    @rule(reader=readers, scope=scopes, place=places)
    def look(self, reader, scope, place):
        """Read a file by a name that it could have, or attach it to a mail of one's own."""
        path, home = f"{scope}0.py", f"agents/{reader}"
        names = [path, f"{home}/workspace/{path}"]
        names += [f"{home}/judged/{commit}/{path}" for commit in self.tips()]
        one = next((c for c in self.contracts if c["to"] == reader and c["state"] in OPEN), None)
        header = {"X-Nexus-Session": one["session"]} if one else {}
        mail = {"to": LEAD, "type": "info", "subject": "S", "body": "B"}
        for name in names[1:]:
            mail["attachments"] = [{"path": name}]
            sent = self.here.call(reader, "send_mail", header, **mail)
            assert sent.code != "OK" or self.may_read(reader, scope), name
        name = names[place % len(names)]
        read = self.here.call(reader, "read_file", header, path=name)
        assert read.code != "OK" or self.may_read(reader, scope), name

    def may_read(self, reader, scope):
        """A worker what a contract in progress names, QA what is in review."""
        judges = self.here.agent(reader).role.name == JUDGE
        return any(
            (one["state"], reader) == ("in_progress", one["to"])
            or (one["state"] == "review" and judges)
            for one in self.contracts
            if one["scope"] == scope
        )

    def tips(self):
        listed = self.hands.git("for-each-ref", "--format=%(objectname)", "refs/heads")
        return sorted(set(listed.split()))

    @invariant()
    def main_moves_by_merges_only(self):
        assert self.hands.git("rev-parse", "refs/heads/main") == self.main
