"""Calls of tools by agents of the NEXUS company in coding mode."""

from dataclasses import replace

from orgchart.policy.vocabulary import ToolMode
from tests.documents.world import NOW, caller_of
from toolbox import door


def coding(nexus, handle):
    caller = caller_of(nexus, handle)
    return replace(caller, session=replace(caller.session, mode=ToolMode.CODING))


def call(caller, tool, **params):
    return door.call(caller, tool, params, now=NOW).body
