"""A contract may answer an escalation; which one, it says once."""

import django.db.models.deletion
from django.db import migrations, models


GUARD = """
CREATE FUNCTION contracts_answer_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'which escalation a contract answers does not change'
        USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER contracts_contract_answer BEFORE UPDATE ON contracts_contract
    FOR EACH ROW WHEN (NEW.answers_id IS DISTINCT FROM OLD.answers_id)
    EXECUTE FUNCTION contracts_answer_stays();
"""
BACK = """
DROP TRIGGER contracts_contract_answer ON contracts_contract;
DROP FUNCTION contracts_answer_stays();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("contracts", "0003_deadlines"),
        ("mailroom", "0005_escalation_answers"),
    ]

    operations = [
        migrations.AddField(
            "contract",
            "answers",
            models.OneToOneField(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="mailroom.escalation",
            ),
        ),
        migrations.RunSQL(GUARD, BACK),
    ]
