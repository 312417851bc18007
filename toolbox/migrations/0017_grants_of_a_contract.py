from django.db import migrations, models


class Migration(migrations.Migration):
    """Closed grants of a contract are asked for too: whether a person closed one."""

    dependencies = [("toolbox", "0016_answers_to_the_letter")]

    operations = [
        migrations.RemoveIndex(model_name="modegrant", name="mode_grant_contract"),
        migrations.AddIndex(
            model_name="modegrant",
            index=models.Index(fields=["contract_ref"], name="mode_grant_contract"),
        ),
    ]
