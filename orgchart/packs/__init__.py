"""Packs: an organisation as a folder of YAML; checked, loaded, compared, exported."""

from orgchart.packs.checking import review_pack
from orgchart.packs.exporting import NotAPack, export_pack
from orgchart.packs.loading import (
    OtherOrganisation,
    PackDifference,
    diff_pack,
    kept_deactivated,
    load_pack,
)
from orgchart.packs.problems import BadPack, Problem
from orgchart.packs.schema import json_schema

__all__ = [
    "BadPack",
    "NotAPack",
    "OtherOrganisation",
    "PackDifference",
    "Problem",
    "diff_pack",
    "export_pack",
    "json_schema",
    "kept_deactivated",
    "load_pack",
    "review_pack",
]
