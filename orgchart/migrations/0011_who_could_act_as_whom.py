"""All who could act as a person when they chose a password or proposed a change.

Spec: people 49, people 58.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models


def follow(apps, schema_editor):
    """From who chose a password to who chose theirs, and so on, as it was read until now."""
    given_passwords = apps.get_model("orgchart", "GivenPassword").objects
    given = dict(given_passwords.exclude(given_by="").values_list("person__username", "given_by"))

    def behind(name):
        found = []
        while name and name not in found:
            found.append(name)
            name = given.get(name, "")
        return found

    for row in given_passwords.exclude(given_by=""):
        row.known_to = behind(row.given_by)
        row.save(update_fields=["known_to"])
    for row in apps.get_model("orgchart", "PendingChange").objects.filter(state="proposed"):
        row.proposer_known_to = behind(row.proposed_by)
        row.save(update_fields=["proposer_known_to"])


def name_who_chose(apps, schema_editor):
    """The way back: the first of them chose it."""
    for row in apps.get_model("orgchart", "GivenPassword").objects.exclude(known_to=[]):
        row.given_by = row.known_to[0]
        row.save(update_fields=["given_by"])


class Migration(migrations.Migration):
    dependencies = [("orgchart", "0010_pauses_of_the_board")]
    operations = [
        *(
            migrations.AddField(
                model,
                name,
                ArrayField(models.CharField(max_length=150), blank=True, default=list),
            )
            for model, name in (
                ("givenpassword", "known_to"),
                ("pendingchange", "proposer_known_to"),
            )
        ),
        migrations.RunPython(follow, name_who_chose),
        migrations.RemoveField("givenpassword", "given_by"),
    ]
