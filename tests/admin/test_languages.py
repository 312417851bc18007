"""Every page in Chinese: chosen by a person, complete, and the record stays English."""

import os

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.utils import flatten, label_for_field
from django.test import Client
from django.utils.functional import Promise
from django.utils.translation.trans_real import translation

from nexus_site.languages.catalogue import Translations
from nexus_site.languages.compiled import compiled_catalogues
from nexus_site.languages.messages import (
    Message,
    messages_of_python,
    messages_of_template,
    our_messages,
    translated_by_libraries,
)
from nexus_site.languages.names import is_code, names_of_models
from nexus_site.languages.scripts import script_texts
from nexus_site.languages.wanted import LOCALES, SAME, file_of, wanted_messages
from nexus_site.run.identity import plain_user
from orgchart.organisation_settings import SETTINGS
from tests.admin.english import english_on

CHINESE = {"HTTP_ACCEPT_LANGUAGE": "zh-CN,zh;q=0.9"}


class TestTheCatalogue:
    @pytest.mark.parametrize("locale", LOCALES)
    def test_translates_every_text(self, locale):
        """`manage.py translations` lists the same, and adds what is missing."""
        problems = Translations.read(file_of(locale)).problems(wanted_messages(locale), SAME)
        assert [*problems] == []

    @pytest.mark.parametrize("locale", LOCALES)
    def test_is_written_in_one_form(self, locale):
        assert Translations.read(file_of(locale)).written() == file_of(locale).read_bytes()

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "not translated"),
            ("给 {name} 的邮件", "placeholders"),
            ("给 %(name)s 的 <i>邮件</i>", "placeholders"),
            ("Mail to %(name)s", "still English"),
        ],
    )
    def test_reports_what_misleads(self, text, problem):
        message = Message("Mail for %(name)s")
        found = [*Translations("zh_Hans", {message: text}).problems({message}, SAME)]
        assert len(found) == 1
        assert problem in found[0]

    def test_reports_what_nothing_shows(self):
        kept = Translations("zh_Hans", {Message("Mail"): "邮件"})
        assert [*kept.problems(set(), SAME)] == ['nothing shows "Mail"']

    def test_reports_fuzzy_and_obsolete_entries(self, tmp_path):
        file = tmp_path / "zh_Hans" / "LC_MESSAGES" / "django.po"
        file.parent.mkdir(parents=True)
        file.write_text('#, fuzzy\nmsgid "Mail"\nmsgstr "邮件"\n\n#~ msgid "Old"\n#~ msgstr "旧"\n')
        found = [*Translations.read(file).problems({Message("Mail")}, SAME)]
        assert found == ['fuzzy: "Mail"', "obsolete: Old"]

    def test_is_compiled_again_when_it_changes(self, tmp_path):
        source, kept = tmp_path / "locale", tmp_path / "kept"
        po = source / "zh_Hans" / "LC_MESSAGES" / "django.po"
        po.parent.mkdir(parents=True)
        for text in ("邮件", "信件"):
            po.write_bytes(Translations("zh_Hans", {Message("Mail"): text}).written())
            compiled_catalogues(source, kept)
            compiled = kept / "zh_Hans" / "LC_MESSAGES" / "django.mo"
            assert text.encode() in compiled.read_bytes()
        before = compiled.stat().st_mtime_ns
        compiled_catalogues(source, kept)
        assert compiled.stat().st_mtime_ns == before

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
    def test_belongs_to_the_service_where_root_compiled_it(self, tmp_path):
        source, var = tmp_path / "locale", tmp_path / "var"
        po = source / "zh_Hans" / "LC_MESSAGES" / "django.po"
        po.parent.mkdir(parents=True)
        po.write_bytes(Translations("zh_Hans", {Message("Mail"): "邮件"}).written())
        var.mkdir()
        os.chown(var, *plain_user())
        compiled_catalogues(source, var / "locale")
        assert {each.stat().st_uid for each in var.rglob("*")} == {plain_user()[0]}

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
    def test_gives_nothing_away_that_a_planted_link_leads_to(self, tmp_path):
        source, var, roots = tmp_path / "locale", tmp_path / "var", tmp_path / "etc"
        po = source / "zh_Hans" / "LC_MESSAGES" / "django.po"
        for folder in (po.parent, var, roots / "folder"):
            folder.mkdir(parents=True)
        po.write_bytes(Translations("zh_Hans", {Message("Mail"): "邮件"}).written())
        (roots / "folder" / "shadow").write_text("of root")
        os.chown(var, *plain_user())
        (var / "locale").symlink_to(roots)
        compiled_catalogues(source, var / "locale")
        assert {each.stat().st_uid for each in (roots, *roots.rglob("*"))} == {0}


class TestTheTextsToTranslate:
    def test_are_found_in_python(self):
        source = (
            '_("a" " b"); gettext_noop("c"); ngettext("one", "many", 3); gettext(name); other("d")'
        )
        assert {*messages_of_python(source)} == {
            Message("a b"),
            Message("c"),
            Message("one", "many"),
        }

    def test_are_found_in_templates(self):
        source = (
            '{% load i18n %}{% translate "a" %}'
            "{% blocktranslate with n=x %}b {{ n }}{% endblocktranslate %}"
            "{% blocktranslate count n=x %}{{ n }} c{% plural %}{{ n }} cs{% endblocktranslate %}"
            '{% include "x" with title=_("d") %}'
        )
        assert {*messages_of_template(source)} == {
            Message("a"),
            Message("b %(n)s"),
            Message("%(n)s c", "%(n)s cs"),
            Message("d"),
        }

    def test_are_found_in_scripts(self):
        assert "Skip to the content" in script_texts()
        assert {Message(text) for text in script_texts()} <= our_messages()


class TestWhatTheCatalogueHolds:
    def test_is_not_what_a_library_translates(self):
        wanted = wanted_messages("zh_Hans")
        assert Message("Filter", context="verb") in wanted
        assert Message("Filter") not in wanted
        assert "Filter" in translated_by_libraries("zh_Hans")

    def test_is_found_by_older_pythons(self):
        """Python 3.11.2 finds no text alone where it is kept with its plural."""
        kept = translation("zh-hans")._catalog
        alone = {each for each in our_messages() if not each.plural and each.singular not in SAME}
        assert [each for each in alone if each.key not in kept] == []


class TestTheNamesOfModels:
    MODELS = [m for room in settings.ROOMS for m in apps.get_app_config(room).get_models()]

    @pytest.mark.parametrize("model", MODELS)
    def test_are_looked_up_when_they_are_shown(self, model):
        opts = model._meta
        names = [opts.verbose_name, opts.verbose_name_plural]
        names += [f.verbose_name for f in opts.concrete_fields]
        names += [label for f in opts.concrete_fields for _, label in f.choices or ()]
        assert [n for n in names if not isinstance(n, Promise) and not is_code(n)] == []

    def test_are_all_for_the_catalogue(self):
        assert {"blocked mail", "created at", "in progress", "Mail"} <= names_of_models()

    def test_leave_codes_as_they_are(self):
        choices = dict(apps.get_model("tasks.task")._meta.get_field("task_type").choices)
        assert choices["bug_fix"] == "bug_fix"
        assert isinstance(choices["bug_fix"], str)


class TestLabels:
    """A label names what a person reads or decides, in words of the glossary."""

    SHORT = {"args", "ceo", "hi", "lo", "max", "min", "num", "ref", "seq", "sha256", "slug", "xid"}
    ALONE = {"at", "by", "count", "era", "main", "new", "old", "timestamp"}

    @pytest.mark.parametrize("model", admin.site._registry)
    def test_are_no_names_of_columns(self, model):
        page = admin.site._registry[model]
        columns = {*page.list_display, *flatten(page.fields or ()), *page.readonly_fields}
        shown = {field.verbose_name for field in model._meta.concrete_fields}
        shown |= {label_for_field(name, model, page) for name in columns}
        assert {text for text in map(str, shown) if self.says_too_little(text)} == set()

    def says_too_little(self, text):
        words = text.lower().replace("-", " ").split()
        return "_" in text or bool(self.SHORT & {*words}) or text.lower() in self.ALONE

    @pytest.mark.parametrize("name", [name for name in SETTINGS if "_" in name])
    def test_of_settings_are_not_made_from_their_names(self, name):
        assert SETTINGS[name].label.lower() != name.replace("_", " ")


class TestChoosingALanguage:
    def test_follows_the_browser(self, db):
        assert '<html lang="zh-hans"' in Client(**CHINESE).get("/admin/login/").content.decode()
        assert '<html lang="en"' in Client().get("/admin/login/").content.decode()

    def test_is_kept_in_a_cookie(self, board):
        answer = board.post("/language/", {"language": "zh-hans", "next": "/admin/"})
        assert answer.status_code == 302
        assert answer.headers["Location"] == "/admin/"
        assert '<html lang="zh-hans"' in board.get("/admin/").content.decode()
        board.post("/language/", {"language": "en"})
        assert '<html lang="en"' in board.get("/admin/").content.decode()

    def test_is_offered_before_and_after_signing_in(self, board, db):
        for page in (Client().get("/admin/login/"), board.get("/admin/")):
            html = page.content.decode()
            assert 'action="/language/"' in html
            assert "简体中文" in html

    def test_leads_to_no_foreign_host(self, board):
        sent = {"language": "zh-hans", "next": "https://evil.example/"}
        answer = board.post("/language/", sent)
        assert "evil" not in answer.headers.get("Location", "")

    @pytest.mark.parametrize(
        ("path", "status"), [("/admin/nowhere/", 404), ("/admin/ledger/event/?q=%00", 400)]
    )
    def test_reaches_the_pages_of_errors(self, board, path, status):
        answer = board.get(path, **CHINESE)
        assert answer.status_code == status
        assert '<html lang="zh-hans"' in answer.content.decode()
        assert english_on(answer.content.decode(), {path, "/admin/nowhere"}) == []

    def test_leaves_the_api_english(self, db):
        message = Client().get("/api/v1/tools").json()["message"]
        assert Client(**CHINESE).get("/api/v1/tools").json()["message"] == message
