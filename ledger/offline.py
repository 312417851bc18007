"""Verifying an export by public key: needs the standard library and `cryptography`, no Django.

`python -m ledger.offline EXPORT PUBLIC_KEY` does what `manage.py ledger verify --file` does.
"""

import json
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from ledger.canonical import canonical
from ledger.merkle import proves
from ledger.rules import Chain, Finding, Keys, Leaves, SealFault, check_event
from ledger.seal_format import Leaf, Seal, index_keys, read_public, verifies

FORMAT = 1
END = b"nexus.ledger.export.v1\x00"
LONGEST = 64 * 1024 * 1024
"""Bytes of a line: a forged file may be one line without an end."""


@dataclass(slots=True, kw_only=True)
class FileReport:
    """What a file holds and the first thing wrong with it."""

    selection: dict[str, Any] = field(default_factory=dict)
    first: int = 1
    seals: int = 0
    events: int = 0
    hidden: int = 0
    finding: Finding | None = None

    @property
    def complete(self) -> bool:
        """Whether the file claims to hold every sealed event from the first seal on."""
        return not self.selection and self.first == 1


class Wrong(Exception):
    """Carries the first finding out of the reading."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


UNREADABLE = (
    *(ValueError, KeyError, TypeError, AttributeError, RecursionError),
    *(OverflowError, struct.error),  # of numbers that are too large, or none
)
"""What reading raises where a value is not of its kind."""


class Reader:
    """Follows an export line by line: a header, each seal with its events, and a signed end."""

    def __init__(self, keys: Keys) -> None:
        self.report = FileReport()
        self._keys = keys
        self._hash = sha256(END)
        self._chain = Chain(keys)
        self._leaves: Leaves | None = None
        self._shown = 0
        self._ended = False

    def read(self, lines: Iterable[bytes]) -> FileReport:
        """Read everything; the report's finding is None if the file is sound."""
        number = 0
        try:
            for number, line in enumerate(lines, 1):
                self._line(line, number)
            self._finish(number)
        except Wrong as wrong:
            self.report.finding = wrong.finding
        except UNREADABLE as error:
            self.report.finding = _file(f"unreadable: {type(error).__name__}", number)
        return self.report

    def _finish(self, number: int) -> None:
        if not self._ended:
            raise Wrong(_file("the file ends early", number + 1))

    def _line(self, line: bytes, number: int) -> None:
        entry = json.loads(line)
        if self._ended:
            raise Wrong(_file("something was added behind the end", number))
        if number == 1:
            self._header(entry)
        elif "event" in entry:
            self._event(entry)
        elif "seal" in entry:
            self._seal(entry["seal"], entry["shown"])
        elif "end" in entry:
            self._end(entry["end"], line, number)
        else:
            raise Wrong(_file("this line is no part of an export", number))
        self._hash.update(line)

    def _header(self, entry: dict[str, Any]) -> None:
        if entry["ledger"] != FORMAT:
            raise Wrong(_file(f"format {entry['ledger']} is unknown here", 1))
        self.report.selection = dict(entry["selection"])
        self.report.first = int(entry["first"])
        self._chain = Chain(self._keys, first=self.report.first)

    def _seal(self, values: dict[str, Any], shown: int) -> None:
        self._close()
        seal = read_seal(values)
        _raise(self._chain.check(seal))
        self._leaves, self._shown = Leaves(seal), shown
        self.report.seals += 1
        self.report.hidden += seal.count - shown

    def _event(self, entry: dict[str, Any]) -> None:
        if self._leaves is None:
            raise Wrong(_file("an event comes before the first seal", 2))
        seal, leaf = self._leaves.seal, read_leaf(entry, self._leaves.seal)
        self.report.events += 1
        self._shown -= 1
        if "proof" not in entry:
            _raise(self._leaves.add(leaf))
            return
        _raise(check_event(leaf, seal=seal.number))
        path = [bytes.fromhex(step) for step in entry["proof"]]
        if not proves(
            leaf=leaf.hash(), index=entry["leaf"], size=seal.count, path=path, expected=seal.root
        ):
            message = "it is not among the events of this seal"
            raise Wrong(
                Finding(
                    fault=SealFault.EVENT_REWRITTEN, seal=seal.number, seq=leaf.seq, message=message
                )
            )

    def _close(self) -> None:
        """Check that the seal before this line is whole."""
        if self._leaves is None:
            return
        if self._shown:
            raise Wrong(
                Finding(
                    fault=SealFault.EVENT_MISSING,
                    seal=self._leaves.seal.number,
                    message=f"{self._shown} of its events are missing from the file",
                )
            )
        if not self.report.selection:
            _raise(self._leaves.close())
        self._leaves = None

    def _end(self, values: dict[str, Any], line: bytes, number: int) -> None:
        """Check the signature of the lines before; nothing signs what else this line would say."""
        self._close()
        signature = bytes.fromhex(values["signature"])
        end = {"key_id": values["key_id"], "signature": signature.hex()}
        if line != canonical({"end": end}).encode() + b"\n":
            raise Wrong(_file("the end is not as an export writes it", number))
        public = self._keys.get(values["key_id"])
        digest = self._hash.digest()
        if public is None or not verifies(public, signature, digest):
            raise Wrong(_file("the end is not signed by a trusted key over these lines", None))
        self._ended = True


def verify_lines(lines: Iterable[bytes], keys: Keys) -> FileReport:
    """Verify an export given as lines; memory does not grow with it."""
    return Reader(keys).read(lines)


def verify_file(path: Path, keys: Keys) -> FileReport:
    """Verify an export file."""
    with path.open("rb") as file:
        return verify_lines(iter(partial(file.readline, LONGEST), b""), keys)


def read_seal(values: dict[str, Any]) -> Seal:
    """Return a seal from its exported values."""
    return Seal(
        number=values["number"],
        era=values["era"],
        lo=values["lo"],
        hi=values["hi"],
        count=values["count"],
        root=bytes.fromhex(values["root"]),
        marks=bytes.fromhex(values["marks"]),
        previous=bytes.fromhex(values["previous"]),
        at=datetime.fromisoformat(values["at"]),
        key_id=values["key_id"],
        digest=bytes.fromhex(values["digest"]),
        signature=bytes.fromhex(values["signature"]),
    )


def read_leaf(entry: dict[str, Any], seal: Seal) -> Leaf:
    """Return an event from its exported line."""
    return Leaf(
        era=seal.era,
        xid=entry["xid"],
        seq=entry["seq"],
        digest=bytes.fromhex(entry["digest"]),
        fields=entry["event"],
    )


def read_keys(text: str) -> Keys:
    """Read trusted public keys: a line of base64, or the path of a file with one to a line."""
    path = Path(text)
    lines = path.read_text("ascii").split() if path.exists() else [text]
    return index_keys(read_public(line) for line in lines)


def describe(report: FileReport) -> str:
    """Return one sentence: what the file holds and whether it is valid."""
    if report.finding:
        return f"WRONG {report.finding}"
    whole = "complete" if report.complete else f"a part ({_part(report)})"
    return f"OK {report.seals} seals, {report.events} events, {report.hidden} not shown; {whole}"


def _part(report: FileReport) -> str:
    words = [f"{name}={value}" for name, value in sorted(report.selection.items())]
    return ", ".join([*words, f"from seal {report.first}"])


def _raise(finding: Finding | None) -> None:
    if finding:
        raise Wrong(finding)


def _file(message: str, line: int | None) -> Finding:
    where = "" if line is None else f"line {line}: "
    return Finding(fault=SealFault.FILE, message=f"{where}{message}")


def main(arguments: list[str]) -> int:
    """Verify a file from the command line; exits 0 if valid, 1 if not, 2 for wrong arguments."""
    if len(arguments) != 2:
        sys.stderr.write("usage: python -m ledger.offline EXPORT PUBLIC_KEY\n")
        return 2
    try:
        report = verify_file(Path(arguments[0]), read_keys(arguments[1]))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(describe(report) + "\n")
    return 1 if report.finding else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
