"""The pages of mail, escalations, channels and notices; importing them registers them."""

from mailroom.admin import escalations as escalations
from mailroom.admin import mail as mail
from mailroom.admin import notices as notices
from mailroom.admin import rejections_and_grants as rejections_and_grants
