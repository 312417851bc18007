"""Names of tables and columns are translated on pages, and stay English elsewhere."""

from django.apps import apps
from django.conf import settings
from django.utils.functional import Promise

from contracts.models import Contract
from core.labels import is_code, label_texts
from orgchart.policy.vocabulary import ToolMode
from tasks.models import Task

MODELS = [m for room in settings.ROOMS for m in apps.get_app_config(room).get_models()]


class TestLabels:
    def test_every_name_of_a_table_or_column_is_translated(self):
        for model in MODELS:
            opts = model._meta
            texts = [opts.verbose_name, opts.verbose_name_plural]
            texts += [f.verbose_name for f in opts.concrete_fields]
            texts += [label for f in opts.concrete_fields for _, label in f.choices or ()]
            plain = [t for t in texts if not isinstance(t, Promise) and not is_code(t)]
            assert not plain, model

    def test_every_one_of_them_is_for_the_catalogue(self):
        found = label_texts(settings.ROOMS)
        assert {"blocked mail", "blocked mails", "created at", "in progress"} <= found
        assert not any(is_code(text) for text in found)

    def test_codes_stay_as_they_are(self):
        choices = dict(Task._meta.get_field("task_type").choices)
        assert choices["bug_fix"] == "bug_fix"
        assert ToolMode.CHAT_SAFE in dict(Contract._meta.get_field("mode").choices)
