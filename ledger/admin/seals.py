"""The seals as people read them."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from core.admin.base import in_hex, shown_column
from core.admin.browsing import INSTALLATION, ReadOnlyAdmin
from ledger.models import Seal


@admin.register(Seal)
class SealAdmin(ReadOnlyAdmin):
    """The signed roots."""

    organisation_path = INSTALLATION
    list_display = ("number", "at", "count", "lo", "hi", "key_id", "short_root")
    list_filter = ("at",)
    list_filter_submit = True
    ordering = ("-number",)
    sortable_by = ("number",)
    exclude = ("root", "marks", "previous", "digest", "signature")
    readonly_fields = ("root_hex", "previous_hex", "digest_hex", "signature_hex")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Seal]:
        """Leave the marks where they are: they are long, and for verification."""
        return super().get_queryset(request).defer("marks")

    short_root = shown_column("root", _("root"), lambda root: f"{bytes(root).hex()[:16]}…")
    root_hex = shown_column("root", _("root"), in_hex)
    previous_hex = shown_column("previous", _("previous seal's digest"), in_hex)
    digest_hex = shown_column("digest", _("digest"), in_hex)
    signature_hex = shown_column("signature", _("signature"), in_hex)
