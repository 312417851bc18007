"""What a model reads of its tools before it works: 3,000 tokens at most (Spec: tools 19)."""

import json
from dataclasses import replace

import pytest

from tests.company import load_company
from toolbox.faces.exports import listing

MAX_TOKENS = 3_000
CHARACTERS_PER_TOKEN = 4.5
"""An estimate that is higher than the true count: of these lists cl100k has 4.6 to 4.8 characters
to a token (measured in November 2026 with bpe-openai, too large to install for a test)."""
PACKS = ("nexus", "dev-team", "soloqueue", "constitution")


def tokens(tools: list) -> float:
    """About how many tokens a list of tools has."""
    return len(json.dumps(tools, ensure_ascii=False, separators=(",", ":"))) / CHARACTERS_PER_TOKEN


@pytest.mark.parametrize("form", ["openai", "anthropic"])
@pytest.mark.parametrize("pack", PACKS)
def test_the_tools_of_every_shipped_role_are_short_enough_to_read(db, pack, form):
    company = load_company(pack)
    heavy = {}
    for agent in company.policy.agents.values():
        holder = company.caller(agent.handle).holder
        for mode in company.policy.enabled_modes:
            found = tokens(listing(replace(holder, mode=mode), form))
            if found > MAX_TOKENS:
                heavy[agent.handle, str(mode)] = found
    assert heavy == {}
