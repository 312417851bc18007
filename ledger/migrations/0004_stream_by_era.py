from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ledger", "0003_index_time")]

    operations = [
        migrations.RemoveIndex(model_name="event", name="ledger_event_stream"),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                fields=["for_agent_id", "era", "xid", "seq"],
                name="ledger_event_stream",
                condition=models.Q(for_agent_id__isnull=False),
            ),
        ),
    ]
