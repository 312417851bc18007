"""The sentences of refusals, rules and invariants, found where they are built.

Rules build them in English for agents and the record. What reaches one of `SENTENCES` is followed
back to its literals: through names, conditions, helpers and their callers. A field of an f-string
becomes a placeholder.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_lowercase

from core.patterns import PLACE, without_reference

Function = ast.FunctionDef | ast.AsyncFunctionDef
Parameters = dict[str, int | None]
"""Parameters that take a sentence: the name, and the place among the positional arguments."""

REFUSAL: Parameters = {"message": 1, "next_action": 2, "rule": None}
SENTENCES: Mapping[str, Parameters] = {
    "deny": REFUSAL,
    "refuse": REFUSAL,
    "Deny": {**REFUSAL, "rule": 3},
    "Allow": {"rule": 0},
    "BrokenInvariant": {"message": 3, "fix": 4},
    "_Refusal": {"message": 1, "rule": 2, "next_action": 3},
    "Quota": {"what": None, "help": None},
    "Refusal": {"message": 2, "next_action": 3},
    "ValueError": {"problem": 0},
    "BadSetting": {"problem": 0},
    "replace": {"message": None, "next_action": None},
}
ENUMS = frozenset({"Situation"})
"""Enumerations whose values are sentences."""
WORDS = re.compile(r"[A-Za-z]{2}.* |^ ?[a-z]+ | [a-z]{2,}$")
SEVERAL = re.compile(r"[A-Za-z]{2,} [A-Za-z]{2,}")
NO_SENTENCE = re.compile(r"\n|^-|^# |SELECT |[a-z]\.[a-z_]+ =")


@dataclass(slots=True)
class Module:
    """A module of ours: its functions, and the names it gives values to."""

    tree: ast.Module
    functions: dict[str, Function] = field(default_factory=dict)
    around: dict[ast.AST, Function] = field(default_factory=dict)
    calls: list[ast.Call] = field(default_factory=list)
    values: list[ast.expr] = field(default_factory=list)

    @classmethod
    def of(cls, source: str) -> Module:
        """Read a module."""
        made = cls(ast.parse(source))
        made._enter(made.tree, None)
        return made

    def _enter(self, node: ast.AST, function: Function | None) -> None:
        for child in ast.iter_child_nodes(node):
            if function is not None:
                self.around[child] = function
            if isinstance(child, ast.Call):
                self.calls.append(child)
            if isinstance(child, ast.ClassDef) and child.name in ENUMS:
                self.values += [each.value for each in child.body if isinstance(each, ast.Assign)]
            if isinstance(child, Function):
                self.functions[child.name] = child
                self._enter(child, child)
            else:
                self._enter(child, function)


@dataclass(slots=True)
class Finder:
    """Follows what is said back to where it is written."""

    modules: Mapping[str, Module]
    sinks: dict[tuple[str, str], Parameters] = field(default_factory=dict)
    found: set[str] = field(default_factory=set)
    _seen: set[tuple[int, bool]] = field(default_factory=set)

    def sentences(self) -> set[str]:
        """Every pattern of a sentence, with `%(a)s`, `%(b)s` … for what is put in."""
        self.sinks = {("", name): dict(taken) for name, taken in SENTENCES.items()}
        calls = [(name, call) for name, module in self.modules.items() for call in module.calls]
        known = -1
        while known != sum(map(len, self.sinks.values())):
            known = sum(map(len, self.sinks.values()))
            self._seen.clear()
            for name, call in calls:
                self._at(name, call)
        for name, module in self.modules.items():
            self._follow_all(name, module.values, inner=False)
        return self.found

    def _at(self, module: str, call: ast.Call) -> None:
        name = _called(call)
        own = self.sinks.get((module, name))
        taken = own or self.sinks.get(("", name), {})
        for parameter, place in taken.items():
            named = [each.value for each in call.keywords if each.arg == parameter]
            if not named and place is not None and place < len(call.args):
                named = [call.args[place]]
            for value in named:
                self._follow(module, value, inner=own is not None and parameter not in REFUSAL)

    def _follow(self, module: str, node: ast.expr, *, inner: bool) -> None:
        if (id(node), inner) in self._seen:
            return
        self._seen.add((id(node), inner))
        match node:
            case ast.Constant(value=str()) | ast.JoinedStr() | ast.BinOp(op=ast.Add()):
                self._keep(module, node, inner=inner)
            case ast.Name(id=name):
                self._follow_name(module, node, name, inner=inner)
            case ast.Attribute(attr=name) if name.isupper():
                for each in self.modules:
                    self._follow_all(each, _values(self.modules[each].tree.body, name), inner=inner)
            case ast.Call():
                self._follow_call(module, node, inner=inner)
            case ast.IfExp() | ast.BoolOp() | ast.BinOp(op=ast.Mult()):
                self._follow_all(module, _branches(node), inner=False)
            case _:
                self._follow_all(module, _within(node), inner=inner)

    def _follow_all(self, module: str, nodes: Iterable[ast.expr], *, inner: bool) -> None:
        for node in nodes:
            self._follow(module, node, inner=inner)

    def _follow_name(self, module: str, node: ast.AST, name: str, *, inner: bool) -> None:
        here = self.modules[module]
        function = here.around.get(node)
        if function is not None:
            places = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
            only = [each.arg for each in function.args.kwonlyargs]
            if name in (*places, *only):
                scope = module if function.name.startswith("_") else ""
                place = places.index(name) if name in places else None
                if place is not None and places[0] in ("self", "cls"):
                    place -= 1
                self.sinks.setdefault((scope, function.name), {}).setdefault(name, place)
                return
            local = [*_values(ast.walk(function), name)]
            if local:
                self._follow_all(module, local, inner=inner)
                return
        if name.isupper():
            own = [*_values(here.tree.body, name)]
            homes = [module] if own else [*self.modules]
            for each in homes:
                self._follow_all(each, _values(self.modules[each].tree.body, name), inner=inner)

    def _follow_call(self, module: str, call: ast.Call, *, inner: bool) -> None:
        name = _called(call)
        own = self.modules[module].functions.get(name)
        homes = [module] if own else [k for k, m in self.modules.items() if name in m.functions]
        if len(homes) != 1:
            return
        function = self.modules[homes[0]].functions[name]
        for each in ast.walk(function):
            if isinstance(each, ast.Return | ast.Yield) and each.value is not None:
                self._follow(homes[0], each.value, inner=inner)

    def _keep(self, module: str, node: ast.expr, *, inner: bool) -> None:
        pattern, letters = "", dict[str, str]()
        for part in _parts(node):
            if isinstance(part, str):
                pattern += part.replace("%", "%%")
            else:
                letter = letters.setdefault(ast.unparse(part), ascii_lowercase[len(letters)])
                pattern += f"%({letter})s"
                self._follow(module, part, inner=True)
        pattern = without_reference(pattern)
        literal = PLACE.sub("", pattern)
        if (SEVERAL if inner else WORDS).search(literal) and not NO_SENTENCE.search(literal):
            self.found.add(pattern)


def sentences_of(sources: Mapping[str, str]) -> set[str]:
    """The patterns of the sentences that these modules build."""
    return Finder({name: Module.of(source) for name, source in sources.items()}).sentences()


def sentences_under(folders: Iterable[Path], skipped: frozenset[str]) -> set[str]:
    """The same of every module in these folders."""
    found = {
        str(file): file.read_text()
        for folder in folders
        for file in sorted(folder.rglob("*.py"))
        if skipped.isdisjoint(file.relative_to(folder).parts)
    }
    return sentences_of(found)


def _branches(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.IfExp(body=body, orelse=other):
            return [body, other]
        case ast.BoolOp(values=values):
            return values
        case ast.BinOp(left=left):
            return [left]
        case _:
            return []


def _within(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.Subscript(value=value) | ast.NamedExpr(value=value) | ast.Lambda(body=value):
            return [value]
        case ast.Tuple(elts=values):
            return values
        case _:
            return []


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _values(nodes: Iterable[ast.AST], name: str) -> Iterator[ast.expr]:
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _assigned(target, value, name)
            case ast.AnnAssign(target=ast.Name(id=found), value=ast.expr() as value):
                if found == name:
                    yield value
            case ast.NamedExpr(target=ast.Name(id=found), value=value) if found == name:
                yield value


def _assigned(target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr]:
    match target, value:
        case ast.Name(id=found), _ if found == name:
            yield value
        case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
            for one, its in zip(names, values, strict=True):
                yield from _assigned(one, its, name)
        case ast.Tuple(elts=names), ast.IfExp(body=body, orelse=other):
            yield from _assigned(ast.Tuple(names), body, name)
            yield from _assigned(ast.Tuple(names), other, name)
        case _:
            pass


def _parts(node: ast.expr) -> Iterator[str | ast.expr]:
    match node:
        case ast.Constant(value=str() as text):
            yield text
        case ast.JoinedStr(values=values):
            for each in values:
                yield from _parts(each)
        case ast.FormattedValue(value=value):
            yield value
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from _parts(left)
            yield from _parts(right)
        case _:
            yield node
