"""Prompt, schemas and gate say the same to every agent of every pack, in each mode and frame."""

from itertools import dropwhile, islice, takewhile

import pytest
from django.utils import timezone

from core.decision import Denied
from orgchart.policy.vocabulary import ToolMode
from tests.company import Company, load_company
from tests.decisions import denied
from tests.loaded import rolled_back
from tests.oracle.reading import ORGANISATIONS, agents
from toolbox.faces.exports import EXPORTS
from toolbox.frames import services
from toolbox.gate import admit
from toolbox.modes import open_mode
from toolbox.registry import REGISTRY

TOOLS = [tool.name for tool in REGISTRY.all()]
FRAMES = {
    "no frame": None,
    "an empty skill": [],
    "a narrow skill": ["current_time", "send_mail", "write_file", "no_such_tool"],
    "a wide skill": TOOLS,
}


@pytest.fixture(scope="module", params=ORGANISATIONS)
def pack(request, django_db_setup, django_db_blocker):
    with django_db_blocker.unblock():
        begun = rolled_back()
        next(begun)
        yield load_company(request.param)
        next(begun, None)


@pytest.fixture
def company(pack, settings):
    settings.NEXUS_RATE_BURST = settings.NEXUS_RATE_PER_MINUTE = 1_000_000
    begun = rolled_back()
    next(begun)
    yield Company(pack.organisation)
    next(begun, None)


def in_prompt(text: str) -> list[str]:
    """Names in the tooling layer; the safety layer names what is closed."""
    tooling = text.split("# Your tools")[1].split("\n\n", maxsplit=1)[0]
    return [line[2:].split(":")[0] for line in tooling.splitlines() if line.startswith("- ")]


def closed_in(text: str) -> list[str]:
    """Names in the safety layer: the role's tools that are closed now."""
    lines = text.split("# Limits the system enforces")[1].splitlines()
    closed = dropwhile(lambda line: not line.startswith("Not available now"), lines)
    listed = takewhile(lambda line: line.startswith("- "), islice(closed, 1, None))
    return [line[2:].split(":")[0] for line in listed]


def in_schema(company: Company, handle: str, form: str) -> list[str]:
    found = company.get(f"/api/v1/tools?format={form}" if form else "/api/v1/tools", handle)
    return [
        (tool["function"] if form == "openai" else tool)["name"] for tool in found.body["tools"]
    ]


def through_gate(company: Company, handle: str) -> list[str]:
    """What the execution gate itself admits, of all tools there are."""
    caller, found = company.caller(handle), []
    for name in TOOLS:
        try:
            admit(caller, name)
        except Denied:
            continue
        found.append(name)
    return found


def agree(company: Company, handle: str) -> list[str]:
    admitted = through_gate(company, handle)
    prompt = company.get("/api/v1/prompt", handle).body["prompt"]
    assert in_prompt(prompt) == admitted, handle
    for form in EXPORTS:
        assert in_schema(company, handle, form) == admitted, (handle, form)
    bound = company.policy.roles[company.policy.agents[handle].role].tools
    assert closed_in(prompt) == [name for name in TOOLS if name in bound - set(admitted)], handle
    return admitted


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("mode", list(ToolMode))
def test_every_agent_is_told_what_the_gate_would_let_through(company, pack, mode, frame):
    handles = sorted(agents(pack.organisation.slug))
    assert set(handles) == set(company.policy.agents)
    if mode not in company.policy.enabled_modes:
        with denied("MODE_DENIED"):
            put(company, handles[0], mode)
        return
    for handle in handles:
        put(company, handle, mode)
        if FRAMES[frame] is not None:
            services.enter_skill(
                caller=company.caller(handle),
                name="skill__x",
                prompt="p",
                tools=FRAMES[frame],
                now=timezone.now(),
            )
        admitted = agree(company, handle)
        if FRAMES[frame] is not None:
            assert "return_result" in admitted
            assert set(admitted) <= {*FRAMES[frame], "return_result"}
        if mode is ToolMode.CHAT_SAFE:
            assert not [n for n in admitted if mode not in REGISTRY.get(n).allowed_modes]


def put(company: Company, handle: str, mode: ToolMode) -> None:
    """The agent's standing session in that mode."""
    if mode is not ToolMode.CHAT_SAFE:
        open_mode(
            session_id=company.caller(handle).session.id,
            mode=mode,
            caller=company.person("Board"),
            now=timezone.now(),
            reason="its tools are tried",
        )
