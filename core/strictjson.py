"""Bodies from outside: JSON read strictly, so that nothing unstorable reaches a rule; pure."""

from __future__ import annotations

import json
import re
from typing import Any

from core.decision import Code, Denied, Deny
from core.storable import has_stacked_marks, text_problem

MAX_DEPTH = 32
MAX_ELEMENTS = 10_000  # values of all lists and objects together
MAX_KEYS = 1000  # of one object
LARGEST = 1e64  # of a number with a fraction or an exponent; its inverse is the smallest
"""The database writes such numbers out: 1e300, five bytes here, is read there as 301."""
TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[][{},]', re.DOTALL)
"""A whole text, up to the end if it has none, or one mark outside of texts. The quantifiers never
give back: a search costs no memory, and time in proportion to the body."""


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a body; an empty body is an empty object.

    Raises Denied INVALID_PARAMS for anything else: not UTF-8, duplicate keys, NaN or infinity,
    nested deeper than 32, more than 10,000 elements or 1,000 keys of one object, a number beyond
    1e64 or nearer to 0 than 1e-64, a NUL, half a surrogate pair or more than 30 combining marks in
    a row in a text.
    """
    if not body.strip():
        return {}
    require_shape(body)
    try:
        text = body.decode("utf-8")
        found = DECODER.decode(text)
    except Denied:
        raise
    except json.JSONDecodeError as problem:
        where = f"line {problem.lineno}, column {problem.colno}"
        raise _invalid("body", f"not a JSON text, from {where} on") from problem
    except (ValueError, RecursionError) as problem:
        raise _invalid(
            "body", "not a JSON text in UTF-8, or with a number too long to read"
        ) from problem
    if not isinstance(found, dict):
        raise _invalid("body", "must be a JSON object")
    if b"\\u" in body or has_stacked_marks(text):
        _check_texts(found)
    return found


def read_content(content: bytes) -> Any:
    """The value of a JSON file, of any size: no key is given twice, no number is infinite.

    Raises ValueError with what is wrong.
    """
    try:
        return DECODER.decode(content.decode("utf-8"))
    except Denied as refusal:
        raise ValueError(refusal.deny.message) from refusal
    except RecursionError as problem:
        raise ValueError("it is nested too deep") from problem


def require_shape(body: bytes) -> None:
    """Raise Denied INVALID_PARAMS where a parser would build too many elements, or too deep."""
    openings, marks = body.count(b"[") + body.count(b"{"), body.count(b",")
    if openings + marks > MAX_ELEMENTS or openings > MAX_DEPTH:
        _check_shape(body)


def _check_shape(body: bytes) -> None:
    """Count elements and levels before anything is built, in one pass that keeps nothing.

    An element has at most two texts, its key and its value: more than that are no JSON.
    """
    depth = elements = texts = 0
    for token in TOKEN.finditer(body):
        match body[token.start()]:
            case 0x22:  # a text
                texts += 1
            case 0x5B | 0x7B:  # [ {
                elements += 1
                depth += 1
            case 0x2C:  # ,
                elements += 1
            case _:
                depth -= 1
        if elements > MAX_ELEMENTS or texts > 2 * MAX_ELEMENTS:
            raise _invalid("body", f"more than {MAX_ELEMENTS} elements")
        if depth > MAX_DEPTH:
            raise _invalid("body", f"nested deeper than {MAX_DEPTH}")


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MAX_KEYS:
        raise _invalid("body", f"an object with more than {MAX_KEYS} keys")
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _invalid(key[:64], "is given twice")
            seen.add(key)
    return found


def _refuse_constant(name: str) -> Any:
    raise _invalid("body", f"{name} is no JSON number")


def _parse_float(text: str) -> float:
    value = float(text)
    if abs(value) > LARGEST:
        raise _invalid("body", f"{text[:32]} is too large a number")
    if value and abs(value) < 1 / LARGEST:
        raise _invalid("body", f"{text[:32]} is too small a number")
    return value


def _check_texts(found: dict[str, Any]) -> None:
    for field, value in found.items():
        if problem := text_problem(field):
            raise _invalid("body", f"the name of a field {problem}")
        unchecked = [value]
        while unchecked:
            item = unchecked.pop()
            if isinstance(item, str):
                if problem := text_problem(item):
                    raise _invalid(field[:64], f"a text {problem}")
            elif isinstance(item, dict):
                unchecked += item.keys()
                unchecked += item.values()
            elif isinstance(item, list):
                unchecked += item


def _invalid(field: str, problem: str) -> Denied:
    return Denied(
        Deny(
            Code.INVALID_PARAMS,
            f"{field}: {problem}",
            "correct the named field and call again",
            "parameters",
            {field: problem},
        )
    )


DECODER = json.JSONDecoder(
    object_pairs_hook=_build_object, parse_constant=_refuse_constant, parse_float=_parse_float
)
