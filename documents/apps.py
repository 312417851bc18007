"""The documents room as a Django app."""

from django.apps import AppConfig


class DocumentsConfig(AppConfig):
    """The company tree: notes, reports, PRDs."""

    name = "documents"
    verbose_name = "Documents"

    def ready(self) -> None:
        """Quote the organisation's memory in every prompt."""
        from documents.memory.quoting import global_memory_texts
        from toolbox.faces.prompt import quoted_texts

        quoted_texts.join(global_memory_texts)
