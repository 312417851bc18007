from django.db import migrations

FORWARD = """
CREATE FUNCTION mailroom_rejection_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'mail rejections are insert-only (spec: mail 36)' USING ERRCODE = '23001';
END $$;
CREATE TRIGGER mailroom_mailrejection_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON mailroom_mailrejection
    FOR EACH STATEMENT EXECUTE FUNCTION mailroom_rejection_stays();

CREATE FUNCTION mailroom_mail_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.id, NEW.organisation_id, NEW.sender_id, NEW.recipient_id, NEW.from_agent, NEW.to_agent,
        NEW.mail_type, NEW.subject, NEW.body, NEW.attachments, NEW.reply_to_id, NEW.contract_ref,
        NEW.created_at, NEW.route_log)
       IS DISTINCT FROM
       (OLD.id, OLD.organisation_id, OLD.sender_id, OLD.recipient_id, OLD.from_agent, OLD.to_agent,
        OLD.mail_type, OLD.subject, OLD.body, OLD.attachments, OLD.reply_to_id, OLD.contract_ref,
        OLD.created_at, OLD.route_log)
    THEN
        RAISE EXCEPTION 'a delivered mail does not change' USING ERRCODE = '23001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER mail_stays BEFORE UPDATE ON mailroom_mail
    FOR EACH ROW EXECUTE FUNCTION mailroom_mail_stays();
"""

BACKWARD = """
DROP TRIGGER mail_stays ON mailroom_mail;
DROP FUNCTION mailroom_mail_stays();
DROP TRIGGER mailroom_mailrejection_only_grows ON mailroom_mailrejection;
DROP FUNCTION mailroom_rejection_stays();
"""


class Migration(migrations.Migration):
    """What was sent, and what was refused, stays as it was."""

    dependencies = [("mailroom", "0001_tables")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
