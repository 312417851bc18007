"""Playing a case: what each office submits, and the way to each stage."""

import hashlib

from django.contrib.auth import get_user_model
from django_otp.oath import TOTP
from django_otp.plugins.otp_totp.models import TOTPDevice

BODY = "print('ok')\n"
SHA = hashlib.sha256(BODY.encode()).hexdigest()
OUTPUT = hashlib.sha256(b"ok\n").hexdigest()
AGENT = {
    "ANALYSIS": "analyst",
    "TASKS": "planner",
    "IMPLEMENTATION": "implementer",
    "REVIEW": "reviewer",
    "TEST": "tester",
}
CONTENT = {
    "ANALYSIS": {"what": "W", "why": "Y", "constraints": ["C"]},
    "TASKS": {"tasks": [{"id": "T1", "task": "Print ok", "verify_by": "python ok.py"}]},
    "IMPLEMENTATION": {"artifacts": [{"path": "ok.py", "sha256": SHA, "body": BODY}]},
    "REVIEW": {"violations": []},
    "TEST": {},
}
EVIDENCE = [{"task": "T1", "command": "python ok.py", "exit_status": 0, "output_sha256": OUTPUT}]


class Play:
    """One case of a company, played over HTTP."""

    def __init__(self, company, request="Say ok", title="A case"):
        self.company = company
        self.id = company.call("analyst", "case_open", title=title, request=request).result[
            "case_id"
        ]

    def submit(self, stage, outcome=None, by=None, **changes):
        params = {"case_id": self.id, "stage": stage, "content": CONTENT[stage]}
        if outcome:
            params["outcome"] = outcome
        if outcome == "REJECTED":
            params["content"] = {"violations": [{"task": "T1", "article": "2"}]}
        if outcome == "PASSED":
            params["evidence"] = EVIDENCE
        return self.company.call(by or AGENT[stage], "case_submit", **{**params, **changes})

    def to(self, stage):
        """Submit what comes before a stage; VERDICT: all of it, approved and passed."""
        for each, outcome in (
            ("ANALYSIS", None),
            ("TASKS", None),
            ("IMPLEMENTATION", None),
            ("REVIEW", "APPROVED"),
            ("TEST", "PASSED"),
        ):
            if each == stage:
                break
            assert self.submit(each, outcome).status == 200
        return self

    def decide(self, decision, by="conductor"):
        return self.company.call(
            by, "case_decide", case_id=self.id, decision=decision, reason="ruled"
        )

    def inputs(self, by, **params):
        return self.company.call(by, "case_inputs", case_id=self.id, **params)

    @property
    def row(self):
        from governance.models import Case

        return Case.objects.get(id=self.id)

    @property
    def at(self):
        row = self.row
        return (row.state, row.stage, row.round)


def enrolled(username):
    user, _ = get_user_model().objects.get_or_create(username=username, is_staff=True)
    return TOTPDevice.objects.create(user=user, name="t", confirmed=True)


def code_of(device, at):
    totp = TOTP(device.bin_key, device.step, device.t0, device.digits)
    totp.time = at.timestamp()
    return f"{totp.token():06d}"
