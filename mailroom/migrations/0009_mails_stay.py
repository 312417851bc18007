"""A sent mail is not deleted, and of its row only what happens to it after sending changes."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION mailroom_mail_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a sent mail is not deleted' USING ERRCODE = '23001';
END $$;
CREATE TRIGGER mailroom_mail_only_grows BEFORE DELETE OR TRUNCATE ON mailroom_mail
    FOR EACH STATEMENT EXECUTE FUNCTION mailroom_mail_is_kept();
CREATE OR REPLACE FUNCTION mailroom_mail_stays() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sent mailroom_mail = OLD;
BEGIN
    sent.status = NEW.status;
    sent.version = NEW.version;
    sent.delivered_at = coalesce(OLD.delivered_at, NEW.delivered_at);
    sent.read_at = coalesce(OLD.read_at, NEW.read_at);
    sent.rejected_reason = coalesce(OLD.rejected_reason, NEW.rejected_reason);
    IF NEW IS DISTINCT FROM sent THEN
        RAISE EXCEPTION 'a sent mail does not change' USING ERRCODE = '23001';
    END IF;
    RETURN NEW;
END $$;
"""

BACKWARD = """
DROP TRIGGER mailroom_mail_only_grows ON mailroom_mail;
DROP FUNCTION mailroom_mail_is_kept();
CREATE OR REPLACE FUNCTION mailroom_mail_stays() RETURNS trigger LANGUAGE plpgsql AS $$
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
"""


class Migration(migrations.Migration):
    dependencies = [("mailroom", "0008_five_statuses")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
