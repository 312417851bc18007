"""The largest values that several rooms share; pure."""

BIGGEST_VERSION = 2**31 - 1
MAX_AMOUNT = 999_999_999_999_999
MAX_SUBJECT = 200  # characters of a mail's subject, and of every title
MAX_MAIL_BODY = 10_000  # characters of a mail's body
MAX_REASON = 2_000  # characters of the reason that an agent gives
MAX_TEXT = 200_000  # characters of a text of the policy, as a prompt
MAX_SENTENCE = 1_000  # characters of one prohibition, and of what a mail type is for
