"""What was attached to a mail is kept by its digest."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

FORWARD = """
CREATE TRIGGER kept_file_stays BEFORE UPDATE ON documents_keptfile
    FOR EACH ROW EXECUTE FUNCTION documents_memory_stays();
CREATE TRIGGER documents_keptfile_only_grows BEFORE DELETE OR TRUNCATE ON documents_keptfile
    FOR EACH STATEMENT EXECUTE FUNCTION documents_row_is_kept();
"""

BACKWARD = """
DROP TRIGGER kept_file_stays ON documents_keptfile;
DROP TRIGGER documents_keptfile_only_grows ON documents_keptfile;
"""


class Migration(migrations.Migration):
    dependencies = [("documents", "0005_documents_are_kept"), ("orgchart", "0001_tables")]

    operations = [
        migrations.CreateModel(
            name="KeptFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("sha256", models.CharField(max_length=64)),
                ("content", models.BinaryField()),
                (
                    "organisation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="orgchart.organisation",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("organisation", "sha256"), name="kept_file_once"
                    ),
                    models.CheckConstraint(
                        condition=Q(sha256__regex=r"^[0-9a-f]{64}$"), name="kept_file_digest_form"
                    ),
                ]
            },
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
