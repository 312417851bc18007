"""A company with many agents more than its pack has."""

from dataclasses import replace


def crowded(policy, more, *, worker, superior):
    """The policy of a company with so many agents more like this worker, under its superior."""
    one = policy.agents[worker]
    crowd = {f"{worker}_{n}": replace(one, id=100 + n, handle=f"{worker}_{n}") for n in range(more)}
    return replace(
        policy,
        agents={**policy.agents, **crowd},
        holders={**policy.holders, one.role: policy.holders[one.role] | set(crowd)},
        below={**policy.below, superior: policy.below[superior] | set(crowd)},
    )
