"""A budget may name the request it answers; which one, it says once (Spec: contracts 15)."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

GUARD = """
CREATE FUNCTION contracts_request_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'which request a contract answers does not change'
        USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER contracts_contract_request BEFORE UPDATE ON contracts_contract
    FOR EACH ROW WHEN (NEW.request_id IS DISTINCT FROM OLD.request_id)
    EXECUTE FUNCTION contracts_request_stays();
"""
BACK = """
DROP TRIGGER contracts_contract_request ON contracts_contract;
DROP FUNCTION contracts_request_stays();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("contracts", "0009_what_lines_give"),
        ("mailroom", "0005_escalation_answers"),
    ]

    operations = [
        migrations.AddField(
            "contract",
            "request",
            models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="mailroom.mail",
            ),
        ),
        migrations.AddConstraint(
            "contract",
            models.CheckConstraint(
                condition=Q(request=None) | Q(kind="budget"), name="contract_request_of_a_budget"
            ),
        ),
        migrations.AddConstraint(
            "contract",
            models.UniqueConstraint(
                fields=["request"],
                condition=~Q(state="cancelled"),
                name="contract_request_answered_once",
            ),
        ),
        migrations.RunSQL(GUARD, BACK),
    ]
