"""`manage.py translations`: what is to be translated, and what is missing or wrong."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from nexus_site.languages.catalogue import Translations
from nexus_site.languages.wanted import LOCALES, SAME, file_of, wanted_messages


class Command(BaseCommand):
    """Brings each catalogue in line with the code; fails while a text has no translation."""

    help = (
        "Add new texts to the catalogues under locale/, drop those that nothing shows any more, "
        "and list what is missing or wrong."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Whether it writes, and where translations come from."""
        parser.add_argument("--check", action="store_true", help="write nothing")
        parser.add_argument(
            "--missing",
            metavar="FILE",
            help='write a JSON object {"English": ""} of what is missing',
        )
        parser.add_argument(
            "--fill", metavar="FILE", help='take translations from a JSON object {"English": "…"}'
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it for every language but English."""
        answers = json.loads(Path(options["fill"]).read_text()) if options["fill"] else {}
        found: list[str] = []
        for locale in LOCALES:
            wanted = wanted_messages(locale)
            kept = Translations.read(file_of(locale))
            if not options["check"]:
                kept = kept.completed(wanted).filled(answers)
                file_of(locale).parent.mkdir(parents=True, exist_ok=True)
                file_of(locale).write_bytes(kept.written())
            missing = sorted(each for each in wanted if not kept.texts.get(each))
            if options["missing"]:
                asked = {each.name: "" for each in missing}
                Path(options["missing"]).write_text(json.dumps(asked, ensure_ascii=False, indent=0))
            found += [f"{locale}: {problem}" for problem in kept.problems(wanted, SAME)]
        self.stdout.write("".join(f"{line}\n" for line in found), ending="")
        if found:
            raise CommandError(f"{len(found)} texts to look at, see {settings.BASE_DIR / 'locale'}")
        self.stdout.write("Every text is translated.")
