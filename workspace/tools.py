"""The tools of the workspace: importing their modules declares them."""

from workspace.builds import tools as build_tools  # noqa: F401  declares them
from workspace.files import tools as file_tools  # noqa: F401  declares them
from workspace.git import tools as git_tools  # noqa: F401  declares them
from workspace.runs import tools as run_tools  # noqa: F401  declares them
from workspace.skills import tools as skill_tools  # noqa: F401  declares them
from workspace.web import tools as web_tools  # noqa: F401  declares them
