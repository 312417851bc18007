"""Six agents run one case: python3 docs/clients/six_agents.py [--url URL] [--keys FILE]

Each agent has its own key and one loop: list the cases, take the one whose turn it is, ask for the
legal inputs, answer. Analyst, Planner and Implementer call over REST, the others over MCP. Nothing
but Python is needed. To use a framework of your own, replace the functions below OFFICES: each gets
its legal inputs and gives what is submitted.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

COMMAND = "python3 greet.py"
ATTEMPTS = iter(["print('hello')\nprint('and more')\n", "print('helo')\n", "print('hello')\n"])


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def analyst(inputs):
    what = inputs["REQUEST"]
    return {"content": {"what": what, "why": "Visitors feel welcome.", "constraints": ["Python"]}}


def planner(inputs):
    text = f"{inputs['ANALYSIS']['what']}: one line"
    task = {"id": "T1", "task": text, "verify_by": f"{COMMAND} prints hello"}
    return {"content": {"tasks": [task]}}


def implementer(inputs):
    """Sees TASKS only: neither why, nor what was wrong before. This one needs three attempts."""
    body = next(ATTEMPTS)
    return {"content": {"artifacts": [{"path": "greet.py", "sha256": sha256(body), "body": body}]}}


def reviewer(inputs):
    """Rejects what has more lines than the task asks for; gives an article and no advice."""
    body = inputs["IMPLEMENTATION"]["artifacts"][0]["body"]
    if len(body.splitlines()) == 1:
        return {"outcome": "APPROVED", "content": {"violations": []}}
    found = [{"task": "T1", "article": "2: added requirements"}]
    return {"outcome": "REJECTED", "content": {"violations": found}}


def tester(inputs):
    """Runs the artifact and reports what it did."""
    task = inputs["VERIFY_BY"][0]
    wanted = task["verify_by"].partition(" prints ")[2]
    with tempfile.TemporaryDirectory() as folder:
        for each in inputs["ARTIFACTS"]:
            Path(folder, each["path"]).write_text(each["body"])
        done = subprocess.run(
            [sys.executable, "greet.py"],
            cwd=folder, capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
    right = done.returncode == 0 and done.stdout.strip() == wanted
    evidence = {
        "task": task["id"],
        "command": COMMAND,
        "exit_status": done.returncode,
        "output_sha256": sha256(done.stdout),
    }
    return {"outcome": "PASSED" if right else "FAILED", "content": {}, "evidence": [evidence]}


def conductor(inputs):
    """Rules on outcomes alone."""
    may = inputs["PROTOCOL"]["decisions"]
    decision = next(each for each in ("DELIVER", "CONTINUE", "STOP") if each in may)
    return {"decision": decision, "reason": f"The protocol allows {', '.join(may)}."}


OFFICES = {
    "ANALYSIS": analyst,
    "TASKS": planner,
    "IMPLEMENTATION": implementer,
    "REVIEW": reviewer,
    "TEST": tester,
    "VERDICT": conductor,
}
OVER_MCP = ("REVIEW", "TEST", "VERDICT")


class Agent:
    """One agent: its key, its stage, and the way it calls."""

    def __init__(self, url, stage, key):
        self.url, self.stage, self.think = url, stage, OFFICES[stage]
        self.name = self.think.__name__
        self.headers = {
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }

    def call(self, tool, **params):
        """The result of a tool; what is refused ends the program with the refusal."""
        if self.stage in OVER_MCP:
            body = {"name": tool, "arguments": params}
            asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": body}
            answer = self._post("/mcp", asked)["result"]["structuredContent"]
        else:
            answer = self._post(f"/api/v1/tools/{tool}", params)
        if not answer["ok"]:
            raise RuntimeError(f"{self.name}: {tool}: {answer['message']}; {answer['next_action']}")
        return answer["result"]

    def _post(self, path, body):
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode(), self.headers, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            return json.load(refused)

    def turn(self):
        """Act in every case that waits for this office."""
        for case in self.call("case_list", state="open")["cases"]:
            if not case["your_turn"]:
                continue
            given = self.call("case_inputs", case_id=case["case_id"])
            said = self.think(given["inputs"])
            if self.stage == "VERDICT":
                moved = self.call("case_decide", case_id=case["case_id"], **said)
            else:
                moved = self.call("case_submit", case_id=case["case_id"], stage=self.stage, **said)
            word = said.get("outcome") or said.get("decision") or "OK"
            print(f"round {case['round']}  {self.name:12} {word:10} -> {moved['stage']}")


def main():
    """Open a case, let six agents work until it ends, and say how it ended."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--url", default="http://127.0.0.1:8000")
    asked.add_argument("--keys", default="var/keys/constitution.json")
    chosen = asked.parse_args()
    keys = json.loads(Path(chosen.keys).read_text())
    agents = [Agent(chosen.url, stage, keys[OFFICES[stage].__name__]) for stage in OFFICES]
    opened = agents[0].call("case_open", title="Greeting", request="Greet every visitor")
    ended, failed = threading.Event(), []

    def work(agent):
        while not ended.is_set():
            try:
                agent.turn()
            except (RuntimeError, OSError, LookupError) as problem:
                failed.append(problem)
                ended.set()
            ended.wait(0.3)

    threads = [threading.Thread(target=work, args=[agent]) for agent in agents]
    for each in threads:
        each.start()
    state = "open"
    until = time.monotonic() + 120
    while state == "open" and not ended.wait(0.3) and time.monotonic() < until:
        cases = agents[0].call("case_list")["cases"]
        state = next(c["state"] for c in cases if c["case_id"] == opened["case_id"])
    ended.set()
    for each in threads:
        each.join()
    print(f"{opened['case_id']} is {state}.", *failed)
    return 0 if state == "delivered" else 1


if __name__ == "__main__":
    sys.exit(main())
