"""A text of ours is kept with its values; what somebody wrote in it stays as it is."""

from core.wording import Wording, as_json, in_english, in_language

MAILS = Wording("%(count)s mails for %(agent)s", {"count": 2, "agent": "ceo"})
CHINESE = {"%(count)s mails for %(agent)s": "给 %(agent)s 的 %(count)s 封邮件"}


def test_is_recorded_in_english():
    assert in_english(MAILS) == "2 mails for ceo"
    assert in_english(("100 % done", MAILS)) == "100 % done\n\n2 mails for ceo"


def test_is_sent_in_another_language():
    kept = as_json(("100 % done", MAILS))
    assert in_language(kept, CHINESE.__getitem__) == "100 % done\n\n给 ceo 的 2 封邮件"
