"""Keys: made once, kept close, read in the forms people have them."""

import base64
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger import keys
from ledger.seal_format import key_id, read_public, verifies, write_public

DIGEST = bytes(range(32))


def pem(key) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


class TestMakeKey:
    def test_keeps_the_key_from_others(self, ledger_dir):
        keys.make_key()
        assert stat.S_IMODE((ledger_dir / keys.PRIVATE).stat().st_mode) == 0o600
        assert stat.S_IMODE(ledger_dir.stat().st_mode) == 0o700
        assert not list(ledger_dir.glob(".*")), "no half-written file stays"

    def test_brings_the_key_and_its_name_to_the_disk(self, ledger_dir, monkeypatch):
        """A machine that ends must not have seals of a key that is gone."""
        kept = []
        monkeypatch.setattr(os, "fsync", lambda each: kept.append(os.fstat(each).st_ino))
        keys.make_key()
        files = [(ledger_dir / name).stat().st_ino for name in (keys.PRIVATE, keys.PUBLIC)]
        folder = ledger_dir.stat().st_ino
        assert kept == [files[0], folder, files[1], folder]

    def test_pins_its_public_key(self):
        made = keys.make_key()
        assert keys.trusted() == {made.key_id: made.public}

    def test_never_replaces_a_key(self):
        assert keys.make_key().public == keys.make_key().public

    def test_pins_a_new_key_beside_the_old(self, ledger_dir):
        old = keys.make_key()
        (ledger_dir / keys.PRIVATE).unlink()
        new = keys.make_key()
        assert list(keys.trusted()) == [old.key_id, new.key_id]

    def test_by_many_at_once_makes_one(self):
        with ThreadPoolExecutor(8) as pool:
            made = set(pool.map(lambda _: keys.make_key().public, range(16)))
        assert len(made) == 1
        assert set(keys.trusted()) == {key_id(made.pop())}


class TestSigner:
    def test_signs_what_its_public_key_verifies(self):
        signer = keys.make_key()
        signature = signer.sign(DIGEST)
        assert verifies(signer.public, signature, DIGEST)
        assert not verifies(signer.public, signature, bytes(32))
        assert not verifies(signer.public, signature[:-1], DIGEST)
        assert not verifies(signer.public, b"", DIGEST)
        assert not verifies(bytes(31), signature, DIGEST)

    def test_comes_from_the_setting_before_the_file(self, settings):
        file = keys.make_key()
        key = Ed25519PrivateKey.generate()
        settings.LEDGER_SIGNING_KEY = base64.b64encode(key.private_bytes_raw()).decode()
        signer = keys.signer(may_create=False)
        assert signer.public == key.public_key().public_bytes_raw() != file.public
        assert keys.trusted() == {signer.key_id: signer.public}

    def test_reads_pem_as_openssl_writes_it(self, settings):
        key = Ed25519PrivateKey.generate()
        settings.LEDGER_SIGNING_KEY = pem(key)
        assert keys.signer(may_create=False).public == key.public_key().public_bytes_raw()

    def test_is_missing_where_none_may_be_made(self, ledger_dir):
        with pytest.raises(keys.KeyMissing, match="new-key"):
            keys.signer(may_create=False)
        assert not (ledger_dir / keys.PRIVATE).exists()

    @pytest.mark.parametrize(
        "wrong",
        [
            "x",
            "AAAA",
            "A" * 43 + "=",
            pem(Ed25519PrivateKey.from_private_bytes(b"key!" * 8)),
            "-----BEGIN NONSENSE-----",
            pem(generate_private_key(SECP256R1())),
        ],
        ids=["letters", "short", "zeros", "repeated", "pem", "curve"],
    )
    def test_is_not_made_of_garbage(self, settings, wrong):
        settings.LEDGER_SIGNING_KEY = wrong
        with pytest.raises(keys.KeyMissing):
            keys.signer(may_create=True)


class TestTrusted:
    def test_are_those_of_the_setting_alone_where_it_names_any(self, settings):
        keys.make_key()
        other = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
        settings.LEDGER_TRUSTED_KEYS = [write_public(other)]
        assert keys.trusted() == {key_id(other): other}

    def test_are_the_earlier_ones_of_the_setting_and_the_one_that_signs(self, settings):
        """As the README says it: after a change of keys the setting names the earlier ones."""
        old, new = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
        settings.LEDGER_SIGNING_KEY = base64.b64encode(new.private_bytes_raw()).decode()
        settings.LEDGER_TRUSTED_KEYS = [write_public(old.public_key().public_bytes_raw())]
        publics = [key.public_key().public_bytes_raw() for key in (old, new)]
        assert list(keys.trusted().values()) == publics

    def test_are_none_where_nothing_is_pinned(self):
        assert keys.trusted() == {}

    @pytest.mark.parametrize("wrong", ["zz", "AAAA", "!" * 44])
    def test_name_the_place_of_a_line_that_is_no_key(self, settings, ledger_dir, wrong):
        keys.make_key()
        with (ledger_dir / keys.PUBLIC).open("a") as file:
            file.write(f"{wrong}\n")
        with pytest.raises(keys.KeyMissing, match=str(ledger_dir / keys.PUBLIC)):
            keys.trusted()
        settings.LEDGER_TRUSTED_KEYS = [wrong]
        with pytest.raises(keys.KeyMissing, match=r"^LEDGER_TRUSTED_KEYS"):
            keys.trusted()

    @pytest.mark.parametrize("wrong", ["", "AAAA", "!" * 44, "A" * 80])
    def test_are_public_keys_or_an_error(self, wrong):
        with pytest.raises(ValueError):  # noqa: PT011 -- base64 and length say it in their own words
            read_public(wrong)


class TestHead:
    @pytest.mark.skipif(os.geteuid() != 0, reason="only root places files of others")
    def test_is_readable_for_the_service_after_a_command_of_root(self, ledger_dir):
        """Spec: ledger 15."""
        os.chown(keys.folder(), 12345, 12345)
        keys.remember_head(7, "ab")
        head = (ledger_dir / keys.HEAD).stat()
        assert (head.st_uid, head.st_gid, stat.S_IMODE(head.st_mode)) == (12345, 12345, 0o600)

    def test_is_what_was_remembered_of_the_chain(self):
        assert keys.known_head() is None
        keys.remember_head(7, "ab")
        keys.remember_head(8, "cd")
        assert keys.known_head() == (8, "cd")
        keys.forget_head()
        assert keys.known_head() is None

    @pytest.mark.parametrize("broken", ["", "{", "[]", "null", "{}", '{"number": "x"}', "\xff"])
    def test_is_a_problem_with_a_way_out_where_the_file_is_broken(self, ledger_dir, broken):
        ledger_dir.mkdir(exist_ok=True)
        (ledger_dir / keys.HEAD).write_text(broken, "latin-1")
        with pytest.raises(keys.KeyMissing, match="ledger adopt"):
            keys.known_head()

    @pytest.mark.parametrize("place", [os.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev")])
    def test_is_the_same_problem_where_it_is_no_file(self, ledger_dir, place):
        """A pipe would keep who reads it waiting for ever."""
        ledger_dir.mkdir(exist_ok=True)
        place(ledger_dir / keys.HEAD)
        with pytest.raises(keys.KeyMissing, match="ledger adopt"):
            keys.known_head()
