"""The seals as people read them."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from core.admin.browsing import (
    INSTALLATION,
    MomentFilter,
    ReadOnlyAdmin,
)
from ledger.models import Seal


@admin.register(Seal)
class SealAdmin(ReadOnlyAdmin):
    """The signed roots."""

    organisation_path = INSTALLATION
    list_display = ("number", "at", "count", "lo", "hi", "key_id", "short_root")
    list_filter = (("at", MomentFilter),)
    list_filter_submit = True
    ordering = ("-number",)
    sortable_by = ("number",)
    exclude = ("root", "marks", "previous", "digest", "signature")
    readonly_fields = ("root_hex", "previous_hex", "digest_hex", "signature_hex")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Seal]:
        """Leave the marks where they are: they are long, and for verification."""
        rows: QuerySet[Seal] = super().get_queryset(request)
        return rows.defer("marks")

    @display(description=_("root"))  # type: ignore[untyped-decorator]
    def short_root(self, seal: Seal) -> str:
        """The beginning of the root."""
        return f"{bytes(seal.root).hex()[:16]}…"

    @display(description=_("root"))  # type: ignore[untyped-decorator]
    def root_hex(self, seal: Seal) -> str:
        """The Merkle root."""
        return bytes(seal.root).hex()

    @display(description=_("previous seal's digest"))  # type: ignore[untyped-decorator]
    def previous_hex(self, seal: Seal) -> str:
        """The link of the chain."""
        return bytes(seal.previous).hex()

    @display(description=_("digest"))  # type: ignore[untyped-decorator]
    def digest_hex(self, seal: Seal) -> str:
        """What was signed."""
        return bytes(seal.digest).hex()

    @display(description=_("signature"))  # type: ignore[untyped-decorator]
    def signature_hex(self, seal: Seal) -> str:
        """The Ed25519 signature."""
        return bytes(seal.signature).hex()
