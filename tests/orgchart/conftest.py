"""The small pack of `world`, and its organisation."""

import pytest

from orgchart.models import Organisation
from tests.orgchart.world import load, write_pack
from tests.rows import make_once


@pytest.fixture
def pack(tmp_path):
    return write_pack(tmp_path / "pack")


@pytest.fixture
def acme(pack):
    def made():
        load(pack)
        return Organisation.objects.get(slug="acme")

    return make_once("acme", made)
