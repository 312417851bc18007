"""A chat model that says what it is told; for the clients' own Python."""

import json
import os
import sys
import uuid
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable

URL, KEY = os.environ["NEXUS_URL"], os.environ["NEXUS_KEY"]


class Scripted(BaseChatModel):
    """Each turn: a line to the test with what is bound and was said, a line back with what to do.

    The line back is `{"calls": [{"name": …, "args": …}]}`, or `{"says": …}` to end the run.
    """

    bound: list[dict[str, Any]] = []

    def bind_tools(self, tools: Any, **_: Any) -> Runnable[Any, AIMessage]:
        told = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.args_schema}
            for tool in tools
        ]
        return type(self)(bound=told)

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        told = [
            {"type": m.type, "text": m.text, "status": getattr(m, "status", "")} for m in messages
        ]
        print(json.dumps({"bound": self.bound, "messages": told}), flush=True)
        order = json.loads(sys.stdin.readline())
        calls = [{**call, "id": uuid.uuid4().hex} for call in order.get("calls", [])]
        answer = AIMessage(content=order.get("says", ""), tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=answer)])

    @property
    def _llm_type(self) -> str:
        return "scripted"
