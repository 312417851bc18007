"""A marker in every artifact, looked for on every route of an office (Spec: constitution 4)."""

import json

import pytest

from tests.governance.cases import oracle
from tests.governance.cases.markers import HANDLE, MARKS, MAY_SEE, marked_case
from toolbox.registry import REGISTRY

pytestmark = pytest.mark.django_db

EVENTS = """SELECT kind, action, actor, tool, subject, code, reason, details::text
            FROM ledger_event WHERE for_agent_id = %s AND kind <> ''"""


def everything(company, handle, case_id):
    """Whatever this agent can be answered: every tool and face, allowed or refused."""
    headers = {"Authorization": f"Bearer {company.key(handle)}"}
    paths = ("/api/v1/me", "/api/v1/tools", "/api/v1/prompt", "/api/v1/tools?format=mcp")
    said = [company.http.get(path, headers=headers).content.decode() for path in paths]
    for tool in REGISTRY.all():
        for params in ({}, {"case_id": case_id}, {"query": "MARK"}, {"case_id": case_id, "x": 1}):
            if tool.name in ("case_submit", "case_decide"):
                continue
            said.append(json.dumps(company.call(handle, tool.name, **params).body))
    said.append(json.dumps(company.call(handle, "case_list", state="open").body))
    for name in sorted(oracle.EVERY_INPUT):
        asked = company.call(handle, "case_inputs", case_id=case_id, names=[name])
        said.append(json.dumps(asked.body))
    for stage in oracle.STAGES[:-1]:
        params = {"case_id": case_id, "stage": stage, "content": {"bad": 1}, "outcome": "OK"}
        said.append(json.dumps(company.call(handle, "case_submit", **params).body))
        asked = {"tool": "case_submit", "params": params}
        said.append(json.dumps(company.post("/api/v1/explain", asked, handle).body))
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(EVENTS, [company.agent(handle).id])
        said += [str(row) for row in cursor.fetchall()]
    return "\n".join(said)


@pytest.mark.parametrize("office", oracle.OFFICES)
def test_an_office_meets_its_legal_inputs_and_no_other_content(company, office, settings):
    settings.NEXUS_RATE_BURST = settings.NEXUS_RATE_PER_MINUTE = 10**6
    case = marked_case(company)
    said = everything(company, HANDLE[office], case.id)
    assert {name for name, mark in MARKS.items() if mark in said} == MAY_SEE[office]
