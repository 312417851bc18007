"""What a list says while it is empty: what will appear there, and how to make it happen."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext_lazy as _

from core.labels import Text

WHEN_EMPTY: Mapping[str, Text] = {
    "mailroom.mail": _(
        "Every mail between agents appears here. An agent sends one with the tool send_mail; the "
        "page of an agent shows its contacts."
    ),
    "mailroom.mailrejection": _(
        "A mail that a rule refused appears here with its reason. Nothing was refused so far: "
        "Explain shows in advance what would be."
    ),
    "mailroom.escalation": _(
        "A problem that an agent brings to its superior with the tool escalate appears here, until "
        "it is answered. Without an answer in time it comes to the Board."
    ),
    "mailroom.contactgrant": _(
        "A contract can let two agents write to each other while it is open. Issue a contract with "
        "such a permission, and it appears here."
    ),
    "mailroom.outgoingnotice": _(
        "What is sent to people outside appears here. Choose a channel for the Board in the "
        "settings of the organisation (board_email or board_webhook)."
    ),
    "contracts.contract": _(
        "Work that an agent orders from another one appears here. Begin with a contract of the "
        "Board: “Issue a contract” at the top of this page."
    ),
    "contracts.report": _(
        "Agents report on their contracts with the tool submit_report. Issue a contract first."
    ),
    "contracts.verdict": _(
        "QA judges work that is in review with the tool write_verdict. Work comes into review when "
        "its agent submits it."
    ),
    "contracts.deadline": _(
        "The reminders of contracts that have a deadline appear here. Give a contract a deadline "
        "when you issue it."
    ),
    "governance.case": _(
        "A case goes from one office to the next until it is delivered. Open one at the top of "
        "this page in an organisation with the six offices, such as the pack constitution."
    ),
    "governance.violation": _(
        "What an office did against the rules of a case appears here. Nothing happened so far."
    ),
    "governance.intervention": _(
        "What people did that changes the work of agents appears here: pauses, cancelled "
        "contracts, amended cases. No person stepped in so far."
    ),
    "tasks.task": _(
        "The shared work of an organisation. Agents create tasks with the tool task_create; "
        "`manage.py tasks import` brings in tasks from files."
    ),
    "tasks.feedback": _(
        "What users say about the product appears here for the product manager. Add it at the top "
        "of this page, or let other systems send it, signed."
    ),
    "documents.document": _(
        "Notes, reports and product requirements that agents write appear here: their tools are "
        "write_note, write_report and write_prd."
    ),
    "documents.memory": _(
        "What agents keep for their next session appears here: they use the tool memory_append."
    ),
    "documents.artifact": _(
        "Results that agents save with the tool save_artifact appear here, each with its versions."
    ),
    "workspace.run": _(
        "Tests and linters that agents run in their sandbox appear here with their output. It "
        "needs a contract in the mode that may change code."
    ),
    "workspace.deployment": _(
        "A service that an agent deploys appears here. It needs an image, and an approval of the "
        "agent’s manager for exactly this image."
    ),
    "workspace.imagebuild": _(
        "Images that agents build with the tool docker_build appear here. It needs a container "
        "engine: the setting CONTAINER_ENGINE."
    ),
    "workspace.repository": _(
        "The source code of each organisation that enables the mode coding appears here. Its "
        "setting `repository` names code to begin with."
    ),
    "workspace.branchmove": _(
        "Each push and each merge of a branch appears here. Agents push with the tool git_push "
        "under a contract in the mode that may change code."
    ),
    "workspace.skill": _(
        "Skills that lie in the skill folders appear here, for a person to approve. Put a folder "
        "with a SKILL.md under .claude/skills, then look again."
    ),
    "orgchart.organisation": _(
        "A company of agents appears here when its pack is loaded: `make up` loads the four that "
        "are shipped, `manage.py org load` any other."
    ),
    "orgchart.agent": _("The agents of your organisations appear here. Hire the first one."),
    "orgchart.role": _("What agents can be hired as appears here: a role and its tools."),
    "orgchart.group": _("Agents that work under one leader appear here as a group."),
    "orgchart.alias": _("Another name by which agents can write to an agent appears here."),
    "orgchart.contactrule": _(
        "Which role may write to which appears here. Without a rule no agent may write to another."
    ),
    "orgchart.mailtyperule": _("The kinds of mail appear here, and who may send them."),
    "orgchart.tooloverride": _(
        "A tool that is taken from one role or agent appears here. All agents have now what their "
        "roles give them."
    ),
    "orgchart.pendingchange": _(
        "A change that gives somebody a right waits here for a second person. Propose one, such as "
        "a new contact rule, and another member of the Board confirms it here."
    ),
    "orgchart.apikey": _(
        "The keys of agents appear here, never the secrets themselves. Issue one on the page of an "
        "agent."
    ),
    "toolbox.session": _("A session appears here when an agent makes its first call with its key."),
    "toolbox.modegrant": _(
        "Who opened the mode that may change code, and when, appears here. An agent gets it with "
        "the contract that it accepts."
    ),
    "toolbox.frame": _(
        "Work that an agent delegates to another and waits for appears here: the tool delegate_to. "
        "So do skills that an agent is in."
    ),
    "toolbox.idempotencyrecord": _(
        "The first answers of calls with an Idempotency-Key appear here for 24 hours."
    ),
    "toolbox.ratebucket": _(
        "How many calls each agent has left appears here from its first call on."
    ),
    "toolbox.jobrun": _(
        "What runs by the clock appears here when the scheduler has run it once: `make up` starts "
        "worker and scheduler."
    ),
    "ledger.event": _(
        "Everything that happens appears here, from the first call or change on, signed."
    ),
    "ledger.seal": _(
        "Each seal signs the events since the one before. The scheduler makes the first one some "
        "seconds after the first event."
    ),
    "axes.accessattempt": _("Failed sign-ins that count towards a lock appear here."),
    "axes.accesslog": _("When people signed in and out appears here."),
    "axes.accessfailurelog": _("Each failed sign-in appears here."),
    "auth.user": _("People who can sign in appear here. `manage.py createsuperuser` adds one."),
    "auth.group": _(
        "The groups that give people their rights appear here after `manage.py migrate`."
    ),
}
"""By the label of the table. A table without a sentence here fails a test."""
