"""An export proves itself to whoever has the public key, and to nobody who does not look."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings as django_settings

from ledger import keys
from ledger.export import Selection, export_lines, write_export
from ledger.models import Event as EventRow
from ledger.offline import describe, main, read_keys, verify_lines
from ledger.rules import SealFault
from ledger.seal_format import index_keys, write_public
from tests.ledger.world import NOW, record, seal_until_covered, tamper

LATER = NOW + timedelta(days=2)


def export(**selection: object) -> list[bytes]:
    signer = keys.signer(may_create=False)
    return list(export_lines(selection=Selection(**selection), signer=signer, now=NOW))


def check(lines: list[bytes]):
    return verify_lines(lines, keys.trusted())


ODD = (
    None, True, -1, 2**70, 1e999, "", "\r\x1b[2KOK 2 seals", "\ud800", [], {}, [[]], {"a": 1},
)  # fmt: skip
"""Values that no export holds in this place; the text would write over the answer in a terminal."""


def puts(values: dict, odd: object, *path: str):
    """One change for each place in a line: this value there."""
    for name, value in values.items():
        if value != odd:
            yield put(name, odd, *path)
        if isinstance(value, dict):
            yield from puts(value, odd, *path, name)


@pytest.fixture
def mixed(ledger_db) -> list[int]:
    """Two seals; organisation 2's events are every third one."""
    seqs = []
    for _ in range(2):
        fresh = [
            record(organisation_id=1 + (i % 3 == 2), at=NOW + timedelta(hours=i)) for i in range(9)
        ]
        seal_until_covered(fresh)
        seqs += fresh
    return seqs


class TestExport:
    def test_holds_every_sealed_event_and_proves_it(self, mixed):
        record(subject="not sealed")
        lines = export()
        report = check(lines)
        assert report.finding is None
        assert (report.events, report.hidden, report.complete) == (18, 0, True)
        shown = [json.loads(line)["seq"] for line in lines if b'"event"' in line]
        assert shown == mixed

    def test_of_one_organisation_shows_no_other(self, mixed):
        lines = export(organisation=2)
        report = check(lines)
        assert report.finding is None
        assert (report.events, report.hidden, report.complete) == (6, 12, False)
        events = [json.loads(line)["event"] for line in lines if b'"event"' in line]
        assert {event["organisation_id"] for event in events} == {2}

    def test_of_a_time_shows_that_time(self, mixed):
        report = check(export(since=NOW + timedelta(hours=3), until=NOW + timedelta(hours=5)))
        assert report.finding is None
        assert (report.events, report.hidden) == (4, 14)

    def test_of_a_late_time_starts_late(self, mixed):
        tomorrow = record(at=LATER)
        wait_and_seal_at(LATER)
        report = check(export(since=LATER))
        assert report.finding is None
        assert (report.first > 1, report.seals, report.events) == (True, 1, 1)
        assert tomorrow

    def test_of_nothing_is_whole(self, ledger_db):
        keys.make_key()
        report = check(export())
        assert report.finding is None
        assert (report.seals, report.events) == (0, 0)

    def test_carries_a_tampered_ledger_s_marks(self, mixed):
        tamper(f"UPDATE ledger_event SET reason = 'x' WHERE seq = {mixed[10]}")
        finding = check(export()).finding
        assert (finding.fault, finding.seq) == (SealFault.EVENT_FIELDS, mixed[10])
        finding = check(export(organisation=1)).finding
        assert (finding.fault, finding.seq) == (SealFault.EVENT_FIELDS, mixed[10])

    def test_into_a_folder_brings_the_public_keys(self, mixed, tmp_path):
        signer = keys.signer(may_create=False)
        path = write_export(tmp_path, selection=Selection(), signer=signer, now=NOW)
        assert path.parent == tmp_path
        trusted = read_keys(str(tmp_path / keys.PUBLIC))
        assert trusted == keys.trusted()
        assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == [keys.PUBLIC, path.name]

    def test_that_fails_leaves_no_file(self, mixed, tmp_path, monkeypatch):
        monkeypatch.setattr("ledger.export.proof", None)
        signer = keys.signer(may_create=False)
        with pytest.raises(TypeError):
            write_export(
                tmp_path / "x.jsonl", selection=Selection(organisation=1), signer=signer, now=NOW
            )
        assert not [p for p in tmp_path.iterdir() if p.is_file()]


def wait_and_seal_at(now) -> None:
    from ledger.sealer import seal_events
    from tests.ledger.world import wait_until_ended

    wait_until_ended()
    assert seal_events(now=now) == 1


def edit(change: Callable[[dict], None], place: int) -> Callable[[list[bytes]], list[bytes]]:
    def apply(lines: list[bytes]) -> list[bytes]:
        entry = json.loads(lines[place])
        change(entry)
        return [*lines[:place], json.dumps(entry).encode() + b"\n", *lines[place + 1 :]]

    return apply


def drop(place: int) -> Callable[[list[bytes]], list[bytes]]:
    return lambda lines: [*lines[:place], *lines[place + 1 :]] if place >= 0 else lines[:place]


def put(entry: str, value: object, *path: str) -> Callable[[dict], None]:
    def change(values: dict) -> None:
        for name in path:
            values = values[name]
        values[entry] = value

    return change


# Lines of `mixed`: 0 header, 1 seal, 2..10 events, 11 seal, 12..20 events, 21 end.
TAMPERED = {
    "an event's field": (edit(put("reason", "x", "event"), 4), SealFault.EVENT_FIELDS, 1),
    "an event's actor": (edit(put("actor", "x", "event"), 15), SealFault.EVENT_FIELDS, 2),
    "a field more": (edit(put("more", "x", "event"), 4), SealFault.EVENT_FIELDS, 1),
    "an event's digest": (edit(put("digest", "00" * 32), 4), SealFault.EVENT_FIELDS, 1),
    "an event's place": (edit(put("seq", 1), 4), SealFault.SEAL_ROOT, 1),
    "an event's transaction": (edit(put("xid", 1), 4), SealFault.SEAL_ROOT, 1),
    "an event taken out": (drop(4), SealFault.EVENT_MISSING, 1),
    "an event twice": (lambda x: [*x[:4], x[4], *x[4:]], SealFault.EVENT_MISSING, 1),
    "two events swapped": (lambda x: [*x[:4], x[5], x[4], *x[6:]], SealFault.SEAL_ROOT, 1),
    "the first seal taken out": (drop(1), SealFault.FILE, None),
    "a later seal taken out": (drop(11), SealFault.EVENT_MISSING, 1),
    "a seal with its events taken out": (lambda x: [x[0], *x[11:]], SealFault.SEAL_MISSING, 1),
    "the last seal taken out": (lambda x: [*x[:11], x[-1]], SealFault.FILE, None),
    "the end taken off": (drop(-1), SealFault.FILE, None),
    "the second half taken off": (lambda x: x[:11], SealFault.FILE, None),
    "a line cut short": (lambda x: [*x[:5], x[5][:20]], SealFault.FILE, None),
    "nothing left": (lambda x: [], SealFault.FILE, None),
    "something behind the end": (lambda x: [*x, x[-1]], SealFault.FILE, None),
    "a seal's count": (edit(put("count", 8, "seal"), 1), SealFault.SEAL_FIELDS, 1),
    "a seal's root": (edit(put("root", "00" * 32, "seal"), 1), SealFault.SEAL_FIELDS, 1),
    "a seal's signature": (
        edit(put("signature", "00" * 64, "seal"), 1),
        SealFault.SEAL_SIGNATURE,
        1,
    ),
    "a seal's key": (edit(put("key_id", "ab", "seal"), 1), SealFault.SEAL_FIELDS, 1),
    "how many are shown": (edit(put("shown", 8), 1), SealFault.EVENT_MISSING, 1),
    "the header says it is a part": (
        edit(put("organisation", 1, "selection"), 0),
        SealFault.FILE,
        None,
    ),
    "the header says it starts later": (edit(put("first", 2), 0), SealFault.SEAL_MISSING, 2),
    "another format": (edit(put("ledger", 2), 0), SealFault.FILE, None),
    "a foreign line": (edit(lambda entry: entry.clear(), 4), SealFault.FILE, None),
    "a line of no JSON": (lambda x: [*x[:4], b"\xff\n", *x[5:]], SealFault.FILE, None),
    "a line of a list": (lambda x: [*x[:4], b"[]\n", *x[5:]], SealFault.FILE, None),
    "NaN in details": (edit(put("n", float("nan"), "event", "details"), 4), SealFault.FILE, None),
    "a number written otherwise": (
        lambda x: [*x[:2], x[2].replace(b":", b": ", 1), *x[3:]],
        SealFault.FILE,
        None,
    ),
    "the end's signature": (edit(put("signature", "00" * 64, "end"), 21), SealFault.FILE, None),
    "the end's key": (edit(put("key_id", "ab", "end"), 21), SealFault.FILE, None),
}


class TestVerifyFile:
    @pytest.mark.parametrize("name", TAMPERED)
    def test_finds(self, mixed, name):
        change, fault, seal = TAMPERED[name]
        lines = export()
        changed = change(lines)
        assert changed != lines
        finding = check(changed).finding
        assert finding is not None, "nothing was found"
        assert (finding.fault, finding.seal) == (fault, seal), str(finding)

    @pytest.mark.parametrize(
        ("change", "fault"),
        [
            (edit(put("reason", "x", "event"), 3), SealFault.EVENT_FIELDS),
            (edit(put("leaf", 1), 3), SealFault.EVENT_REWRITTEN),
            (edit(put("seq", 1), 3), SealFault.EVENT_REWRITTEN),
            (edit(lambda entry: entry["proof"].pop(), 3), SealFault.EVENT_REWRITTEN),
            (edit(lambda entry: entry.pop("proof"), 3), SealFault.FILE),
            (drop(3), SealFault.EVENT_MISSING),
            (lambda x: [*x[:3], x[3], *x[3:]], SealFault.EVENT_MISSING),
            (edit(lambda entry: entry["selection"].clear(), 0), SealFault.EVENT_MISSING),
        ],
    )
    def test_finds_in_a_part(self, mixed, change, fault):
        finding = check(change(export(organisation=2))).finding
        assert finding is not None
        assert finding.fault == fault, str(finding)

    def test_finds_true_lines_of_a_later_export_behind_the_end(self, mixed):
        earlier = export()
        seal_until_covered([record()])
        later = export()
        assert check(later).finding is None
        finding = check([*earlier, *later[21:-1]]).finding
        assert finding is not None
        assert finding.fault == SealFault.FILE

    @pytest.mark.parametrize(
        "edit_end",
        [
            lambda end: end.replace(b"}}", b'},"note":"approved by the Board"}'),
            lambda end: end.replace(b'"}}', b'","note":"approved by the Board"}}'),
            lambda end: b'{"end":{"note":"approved by the Board"},' + end[1:],
            lambda end: end.replace(b":", b": "),
            lambda end: end.rstrip(b"\n"),
            lambda end: re.sub(rb'(?<="signature":")\w+', lambda s: s[0].upper(), end),
        ],
        ids=["beside it", "in it", "before it", "with spaces", "unfinished", "in capitals"],
    )
    def test_finds_words_in_the_end_that_no_key_signed(self, mixed, edit_end):
        *lines, end = export()
        changed = edit_end(end)
        assert changed != end
        finding = check([*lines, changed]).finding
        assert finding is not None
        assert finding.message == f"line {len(lines) + 1}: the end is not as an export writes it"

    def test_reads_no_format_it_does_not_know(self, mixed):
        lines = edit(put("ledger", 2), 0)(export())
        assert check(lines).finding.message == "line 1: format 2 is unknown here"

    @pytest.mark.parametrize("odd", ODD, ids=repr)
    def test_reads_a_file_with_any_value_in_any_place(self, mixed, odd):
        """Who checks a file of a stranger gets an answer, whatever the file holds."""
        lines = export()
        kinds = {next(iter(json.loads(line))): place for place, line in enumerate(lines)}
        for place in kinds.values():
            for change in puts(json.loads(lines[place]), odd):
                said = describe(check(edit(change, place)(lines)))
                assert said.startswith("WRONG"), said
                assert said.isprintable()

    def test_trusts_no_other_key(self, mixed):
        other = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
        assert verify_lines(export(), index_keys([other])).finding.fault == SealFault.SEAL_KEY

    def test_finds_a_file_made_again_with_another_key(self, mixed, ledger_dir):
        trusted = keys.trusted()
        for name in (keys.PRIVATE, keys.PUBLIC):
            (ledger_dir / name).unlink()
        keys.make_key()
        finding = verify_lines(export(), trusted).finding
        assert finding.fault == SealFault.FILE, "only its end is the impostor's"

    def test_says_what_it_read(self, mixed):
        assert describe(check(export())) == "OK 2 seals, 18 events, 0 not shown; complete"
        part = describe(check(export(organisation=2)))
        assert part.endswith("12 not shown; a part (organisation=2, from seal 1)")
        assert describe(check(export()[:-1])).startswith(
            "WRONG ledger: line 22: the file ends early"
        )


class TestStandalone:
    def test_needs_neither_django_nor_a_database(self, mixed, tmp_path):
        signer = keys.signer(may_create=False)
        path = write_export(tmp_path / "x.jsonl", selection=Selection(), signer=signer, now=NOW)
        program = (
            "import sys\n"
            "class Refuse:\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            "        if name.split('.')[0] in ('django', 'psycopg', 'celery', 'pydantic'):\n"
            "            raise ImportError(name)\n"
            "sys.meta_path.insert(0, Refuse())\n"
            "from ledger.offline import main\n"
            "sys.exit(main(sys.argv[1:]))\n"
        )
        answer = subprocess.run(
            [sys.executable, "-c", program, str(path), write_public(signer.public)],
            cwd=django_settings.BASE_DIR,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (answer.returncode, answer.stdout.split()[0]) == (0, "OK"), answer.stderr

    def test_answers_by_its_exit_status(self, mixed, tmp_path, capsys):
        signer = keys.signer(may_create=False)
        path = write_export(tmp_path / "x.jsonl", selection=Selection(), signer=signer, now=NOW)
        key = write_public(signer.public)
        assert main([str(path), key]) == 0
        path.write_bytes(path.read_bytes()[:-200])
        assert main([str(path), key]) == 1
        assert main([]) == 2
        assert "usage" in capsys.readouterr().err
        assert main([str(tmp_path / "missing"), key]) == 2
        assert main([str(path), "no key"]) == 2


def test_the_mixed_ledger_is_what_the_tables_assume(mixed):
    lines = export()
    assert [
        next(iter(sorted(json.loads(x).keys() & {"ledger", "seal", "end", "event"}))) for x in lines
    ] == [
        "ledger",
        "seal",
        *["event"] * 9,
        "seal",
        *["event"] * 9,
        "end",
    ]
    assert EventRow.objects.count() == 18
