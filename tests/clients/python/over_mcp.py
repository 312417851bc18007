"""Runs the graph of docs/clients/langgraph.md over MCP with the scripted model, once."""

import asyncio
import os
from pathlib import Path

from scripted import KEY, URL, Scripted

page: dict = {}
exec(compile(Path(os.environ["SNIPPET"]).read_text(), "langgraph.md", "exec"), page)
graph = page["graph_of"](Scripted(), key=KEY, url=URL)
asyncio.run(graph.ainvoke({"messages": [("user", "Do what your contracts ask.")]}))
