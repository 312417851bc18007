"""Rework, numbered submissions judged once by each judge, and changes that org_change names.

Going back is possible as long as no contract has a second submission.
"""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import F, Q

EXPIRING = ("org_change", "deployment_approval")
IS_APPROVAL = Q(kind="deployment_approval")


REPLACE = """
DO $do$ BEGIN
    EXECUTE replace(pg_get_functiondef('contracts_contract_guard'::regproc), {before}, {after});
END $do$;
"""
ADD_REWORK = REPLACE.format(
    before="$$'in_progress>review', $$", after="$$'in_progress>review', 'review>in_progress', $$"
)
DROP_REWORK = REPLACE.format(
    before="$$'in_progress>review', 'review>in_progress', $$", after="$$'in_progress>review', $$"
)

NUMBER = """
ALTER TABLE contracts_report DISABLE TRIGGER contracts_report_stays;
UPDATE contracts_report SET submission = 1 WHERE kind = 'completion';
ALTER TABLE contracts_report ENABLE TRIGGER contracts_report_stays;
"""
EXPIRE = """
ALTER TABLE contracts_contract DISABLE TRIGGER contracts_contract_agreed;
UPDATE contracts_contract SET expires_at = created_at + interval '7 days'
WHERE kind = 'org_change';
ALTER TABLE contracts_contract ENABLE TRIGGER contracts_contract_agreed;
"""
UNEXPIRE = EXPIRE.replace("created_at + interval '7 days'", "NULL")

GUARD = """
CREATE FUNCTION contracts_verdict_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM contracts_verdict
               WHERE report_id = NEW.report_id AND judge_id = NEW.judge_id) THEN
        RAISE EXCEPTION 'a judge gives one verdict on a submission' USING ERRCODE = 'unique_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER contracts_verdict_once BEFORE INSERT ON contracts_verdict
    FOR EACH ROW EXECUTE FUNCTION contracts_verdict_once();

CREATE FUNCTION contracts_pass_is_judged() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM contracts_verdict v JOIN contracts_report r ON r.id = v.report_id
        WHERE v.contract_id = NEW.id AND v.finding = 'FAIL' AND r.submission = (
            SELECT max(submission) FROM contracts_report WHERE contract_id = NEW.id))
    THEN
        RAISE EXCEPTION 'QA failed this submission' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER contracts_contract_judged BEFORE UPDATE ON contracts_contract
    FOR EACH ROW WHEN (NEW.state = 'passed' AND OLD.state <> 'passed')
    EXECUTE FUNCTION contracts_pass_is_judged();

CREATE FUNCTION contracts_line_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.used_at IS NULL AND EXISTS (
            SELECT 1 FROM contracts_contract
            WHERE id = NEW.contract_id AND kind = 'org_change' AND version = 1
              AND state = 'pending') THEN
            RETURN NEW;
        END IF;
        RAISE EXCEPTION 'a contract names its changes when it is issued'
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF TG_OP = 'UPDATE' AND OLD.used_at IS NULL
       AND (NEW.id, NEW.contract_id, NEW.act, NEW.subject)
           = (OLD.id, OLD.contract_id, OLD.act, OLD.subject) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'a line of a contract is used once, and nothing else of it changes'
        USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER contracts_orgchangeline_once BEFORE INSERT OR UPDATE OR DELETE
    ON contracts_orgchangeline FOR EACH ROW EXECUTE FUNCTION contracts_line_guard();
"""
UNGUARD = """
DROP TRIGGER contracts_orgchangeline_once ON contracts_orgchangeline;
DROP FUNCTION contracts_line_guard();
DROP TRIGGER contracts_contract_judged ON contracts_contract;
DROP FUNCTION contracts_pass_is_judged();
DROP TRIGGER contracts_verdict_once ON contracts_verdict;
DROP FUNCTION contracts_verdict_once();
"""
ACTS = [(a, a.replace("_", " ")) for a in ("hire", "describe", "move", "deactivate")]
ACTS.append(("restrict_tools", "restrict tools"))


class Migration(migrations.Migration):
    dependencies = [("contracts", "0005_approval_due")]

    operations = [
        migrations.RunSQL(ADD_REWORK, DROP_REWORK),
        migrations.CreateModel(
            name="OrgChangeLine",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("act", models.CharField(choices=ACTS, max_length=16)),
                ("subject", models.CharField(max_length=64)),
                ("used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "contract",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="changes",
                        to="contracts.contract",
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(act__in=[a for a, _ in ACTS]), name="org_change_act_known"
                    ),
                    models.CheckConstraint(
                        condition=~Q(subject=""), name="org_change_has_a_subject"
                    ),
                ],
            },
        ),
        migrations.RemoveConstraint("contract", "contract_approval_says_what"),
        migrations.RunSQL(EXPIRE, UNEXPIRE),
        migrations.AddConstraint(
            "contract",
            models.CheckConstraint(
                condition=(
                    IS_APPROVAL
                    & Q(expires_at__isnull=False, issuer__isnull=False)
                    & Q(expires_at__gt=F("created_at"))
                    & ~Q(environment="")
                    & ~Q(artifact="")
                )
                | (~IS_APPROVAL & Q(environment="", artifact="", used_at=None)),
                name="contract_approval_says_what",
            ),
        ),
        migrations.AddConstraint(
            "contract",
            models.CheckConstraint(
                condition=Q(kind__in=EXPIRING, expires_at__gt=F("created_at"))
                | (~Q(kind__in=EXPIRING) & Q(expires_at=None)),
                name="contract_authorisation_expires",
            ),
        ),
        migrations.RemoveConstraint("report", "report_completion_once"),
        migrations.AddField(
            "report", "submission", models.PositiveSmallIntegerField(blank=True, null=True)
        ),
        migrations.RunSQL(NUMBER, migrations.RunSQL.noop),
        migrations.AddConstraint(
            "report",
            models.UniqueConstraint(
                fields=["contract", "submission"], name="report_submission_once"
            ),
        ),
        migrations.AddConstraint(
            "report",
            models.CheckConstraint(
                condition=Q(kind="completion", submission__isnull=False, submission__gte=1)
                | (~Q(kind="completion") & Q(submission=None)),
                name="report_completion_is_numbered",
            ),
        ),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
