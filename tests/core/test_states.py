"""Every state machine: its diagram in the documentation, and its only writer."""

import ast
import re
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings

from core.machines import machine_fields
from governance.cases.printed_tables import with_tables
from nexus_site.management.commands.states import CONSTITUTION, PAGE, states_page
from tests.sources import parsed

MACHINES = machine_fields()
WRITERS = {Path("core/machines.py"), Path("lab/bench/floor.py")}
"""The one writer of states, and the views that the bench measures it against."""
NOT_PRODUCT = {"tests", "proofs", "migrations", "var", ".venv", "docs"}
GAP = "{…}"
"""What stands in a statement for a part that is known only at run time."""


def arrows(diagram):
    return set(re.findall(r"^ +(\w+) --> (\w+) : (\w+)", diagram, re.MULTILINE))


class TestThePage:
    def test_is_what_the_machines_say(self):
        assert PAGE.read_text("utf-8") == states_page(), "run `python manage.py states`"

    def test_of_the_constitution_has_the_tables_of_the_code(self):
        page = CONSTITUTION.read_text("utf-8")
        assert page == with_tables(page), "run `python manage.py states`"

    @pytest.mark.parametrize("field", MACHINES, ids=lambda each: each.machine.name)
    def test_shows_every_transition_of_the_model_and_no_other(self, field):
        section = states_page().split(f"## {field.machine.name}\n")[1].split("\n## ")[0]
        declared = field.model._meta.get_field(field.name).get_all_transitions(field.model)
        assert arrows(section) == {(str(t.source), str(t.target), t.name) for t in declared}


def text_of(node):
    """The text of a string or f-string, or None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(v.value if isinstance(v, ast.Constant) else GAP for v in node.values)
    return None


def model_of(node):
    """The name that a chain of calls and attributes begins with."""
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def keywords_of(call):
    """The names of a call's keywords, also of a dictionary that is unpacked in it."""
    named = {keyword.arg for keyword in call.keywords}
    unpacked = [keyword.value for keyword in call.keywords if keyword.arg is None]
    return named | {text_of(key) for each in unpacked for key in getattr(each, "keys", ()) if key}


def state_writes(source, fields):
    """(line, what) for everything in a module's source that writes the state of a machine."""
    names = {each.name for each in fields}
    others = {model.__name__ for model in apps.get_models()} - {f.model.__name__ for f in fields}
    found = []
    for node in ast.walk(parsed(source)):
        text = text_of(node)
        if text:
            found += [(node.lineno, table) for table in statements(text, fields)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if model_of(node) in others:
                continue
            given = keywords_of(node) & names
            if node.func.attr == "update" and given:
                found.append((node.lineno, f".update({', '.join(sorted(given))}=…)"))
            listed = {text_of(each) for arg in node.args[1:] for each in ast.walk(arg)}
            if node.func.attr == "bulk_update" and listed & names:
                found.append((node.lineno, "bulk_update"))
    return found


def statements(text, fields):
    """The tables whose state field an UPDATE in this text sets."""
    for each in fields:
        table = each.model._meta.db_table
        named = rf"(?:{table}\b|{re.escape(GAP)})"
        plain = rf"\bUPDATE\s+(?:ONLY\s+)?{named}"
        upsert = rf"\bINSERT\s+INTO\s+{named}.*?\bDO\s+UPDATE\s+SET\b"
        for match in re.finditer(
            rf"(?:{plain}|{upsert})(.*?)(?:\bWHERE\b|\bRETURNING\b|\Z)",
            text,
            re.DOTALL | re.IGNORECASE,
        ):
            if re.search(rf"(?<![\w.%(])\"?{each.name}\"?\s*=", match[1]):
                yield f"UPDATE {table}"


class TestTheState:
    """A state is written by `core.machines.swap` alone, which knows the declared transitions."""

    def test_is_written_nowhere_else(self):
        root = settings.BASE_DIR
        found = {
            str(path.relative_to(root)): writes
            for path in root.rglob("*.py")
            if not NOT_PRODUCT & set(path.relative_to(root).parts)
            and path.relative_to(root) not in WRITERS
            and (writes := state_writes(path.read_text("utf-8"), MACHINES))
        }
        assert found == {}

    @pytest.mark.parametrize(
        "source",
        [
            "Contract.objects.filter(id=1).update(state='passed')",
            "rows.update(version=F('version') + 1, state=target)",
            "Contract.objects.bulk_update(rows, ['version', 'state'])",
            "SQL = 'UPDATE contracts_contract SET version = 2, state = %s WHERE id = %s'",
            "cursor.execute('''WITH moved AS (\\n UPDATE contracts_contract SET state=1)''')",
            "SQL = f'UPDATE {table} SET state = %s WHERE id = %s'",
            "rows.update(**{'state': 'passed'})",
            "S = 'INSERT INTO contracts_contract VALUES (1) ON CONFLICT DO UPDATE SET state = 2'",
        ],
    )
    def test_and_the_check_finds_it(self, source):
        assert state_writes(source, MACHINES)

    @pytest.mark.parametrize(
        "source",
        [
            "Contract.objects.filter(state='passed').update(version=2)",
            "SQL = 'UPDATE contracts_contract SET version = 2 WHERE state = %s'",
            "SQL = 'SELECT state FROM contracts_contract WHERE state = 1 FOR UPDATE'",
            "hash.update(state)",
            "INSERT = 'INSERT INTO contracts_contract (id, state) VALUES (1, 2) RETURNING state'",
            "Document.objects.filter(id=1).update(state='filed')",
        ],
    )
    def test_and_nothing_that_only_reads(self, source):
        assert not state_writes(source, MACHINES)

    @pytest.mark.parametrize("field", MACHINES, ids=lambda each: each.machine.name)
    def test_is_protected_and_its_row_has_a_version(self, field):
        assert field.model._meta.get_field(field.name).protected
        assert field.model._meta.get_field("version")
