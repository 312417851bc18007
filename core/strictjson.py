"""Bodies from outside: JSON read strictly, so that nothing odd reaches a rule or the database."""

from __future__ import annotations

import json
from typing import Any

from core.decision import Code, Denied, Deny

MAX_DEPTH = 32
ODD = "holds NUL or half a surrogate pair"


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a body; an empty body is an empty object.

    Raises Denied INVALID_PARAMS for anything else: not UTF-8, duplicate keys, NaN or infinity,
    nested deeper than 32, a NUL or half a surrogate pair in a text.
    """
    if not body.strip():
        return {}
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH:
        _refuse_depth(body)
    try:
        found = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_once,
            parse_constant=_constant,
            parse_float=_finite,
        )
    except Denied:
        raise
    except json.JSONDecodeError as problem:
        where = f"line {problem.lineno}, column {problem.colno}"
        raise _bad("body", f"not a JSON text, from {where} on") from problem
    except (ValueError, RecursionError) as problem:
        raise _bad(
            "body", "not a JSON text in UTF-8, or with a number too long to read"
        ) from problem
    if not isinstance(found, dict):
        raise _bad("body", "must be a JSON object")
    if b"\\u" in body:
        _refuse_odd_text(found)
    return found


def _refuse_depth(body: bytes) -> None:
    depth, in_text, escaped = 0, False, False
    for byte in body:
        if in_text:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                in_text = False
        elif byte == 0x22:
            in_text = True
        elif byte in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise _bad("body", f"nested deeper than {MAX_DEPTH}")
        elif byte in b"]}":
            depth -= 1


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _bad(key[:64], "is given twice")
            seen.add(key)
    return found


def _constant(name: str) -> Any:
    raise _bad("body", f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _bad("body", f"{text[:32]} is too large a number")
    return value


def _refuse_odd_text(found: dict[str, Any]) -> None:
    for field, value in found.items():
        if _is_odd(field):
            raise _bad("body", f"the name of a field {ODD}")
        waiting = [value]
        while waiting:
            item = waiting.pop()
            if isinstance(item, str):
                if _is_odd(item):
                    raise _bad(field[:64], f"a text {ODD}")
            elif isinstance(item, dict):
                waiting += item.keys()
                waiting += item.values()
            elif isinstance(item, list):
                waiting += item


def _is_odd(text: str) -> bool:
    return "\x00" in text or any("\ud800" <= c <= "\udfff" for c in text)


def _bad(field: str, problem: str) -> Denied:
    return Denied(
        Deny(
            Code.INVALID_PARAMS,
            f"{field}: {problem}",
            "correct the named field and call again",
            "parameters",
            {field: problem},
        )
    )
