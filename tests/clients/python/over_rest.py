"""Runs the agent of docs/clients/langgraph.md over REST with the scripted model, once."""

import os
from pathlib import Path

from scripted import KEY, URL, Scripted

page: dict = {}
exec(compile(Path(os.environ["SNIPPET"]).read_text(), "langgraph.md", "exec"), page)
agent = page["agent_of"](Scripted(), page["Nexus"](key=KEY, url=URL))
agent.invoke({"messages": [("user", "Do what your contracts ask.")]})
