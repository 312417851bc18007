"""The states of a deployment, and the one table of its transitions."""

from enum import StrEnum

from core.machines import Machine, Step


class DeploymentState(StrEnum):
    """How far a deployment is. People alone change one that is unknown or succeeded."""

    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"
    REMOVED = "removed"


STARTED = (DeploymentState.STARTED,)
UNKNOWN = (DeploymentState.UNKNOWN,)
MAY_RUN = (DeploymentState.SUCCEEDED, DeploymentState.UNKNOWN)

DEPLOYMENT_ID = "DEP"
"""How the ids of deployments begin, and so the names of their containers."""

DEPLOYMENT = Machine(
    "deployment",
    DeploymentState,
    DeploymentState.STARTED,
    {
        "succeed": Step(STARTED, DeploymentState.SUCCEEDED, "the engine runs it"),
        "fail": Step(STARTED, DeploymentState.FAILED, "the engine refused it, or it ended"),
        "lose_track": Step(STARTED, DeploymentState.UNKNOWN, "the engine did not answer in time"),
        "ask_again": Step(UNKNOWN, DeploymentState.STARTED, "a person asks the engine again"),
        "find_ended": Step(UNKNOWN, DeploymentState.FAILED, "a person looked: it does not run"),
        "take_down": Step(MAY_RUN, DeploymentState.REMOVED, "a person takes the service down"),
    },
)
