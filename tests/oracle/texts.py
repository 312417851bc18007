"""Who reads which text, by hand from the decisions (Spec: files 14, memory 8, tasks 33).

Rows are a text and its writer, columns read. Read are reports by their author, the issuer, the
author's managers and those above; notes and memories by their author; the organisation's memory by
who may be written to by its author; an attachment by sender and recipient. What the same texts are
as files, for who holds `read_file`, is in `files.py`. RESEARCH holds no tool that opens its filed
reports.
"""

from tests.oracle.org import AGENTS, BACKEND, CEO, DEVOPS, FRONTEND, HR, IT, PM, QA, RESEARCH

READERS = """
text        writer CEO IT  HR  PM  BE  FE  DO  QA  RE
note        CEO    Y   -   -   -   -   -   -   -   -
note        IT     -   Y   -   -   -   -   -   -   -
note        HR     -   -   Y   -   -   -   -   -   -
note        PM     -   -   -   Y   -   -   -   -   -
prd         PM     -   -   -   Y   -   -   -   -   -
filed       RE     Y   -   -   Y   -   -   -   -   -
report      BE     Y   Y   -   -   Y   -   -   -   -
report      FE     Y   Y   -   Y   -   Y   -   -   -
report      DO     Y   Y   -   -   -   -   Y   -   -
report      QA     Y   Y   -   -   -   -   -   Y   -
report      RE     Y   -   -   Y   -   -   -   -   Y
contract    CEO    Y   Y   -   -   -   -   -   -   -
contract    IT     Y   Y   -   -   Y   -   -   -   -
contract    PM     Y   -   -   Y   -   -   -   -   Y
memory      CEO    Y   -   -   -   -   -   -   -   -
memory      IT     -   Y   -   -   -   -   -   -   -
memory      HR     -   -   Y   -   -   -   -   -   -
memory      PM     -   -   -   Y   -   -   -   -   -
memory      BE     -   -   -   -   Y   -   -   -   -
memory      FE     -   -   -   -   -   Y   -   -   -
memory      DO     -   -   -   -   -   -   Y   -   -
memory      QA     -   -   -   -   -   -   -   Y   -
memory      RE     -   -   -   -   -   -   -   -   Y
shared      CEO    Y   Y   Y   Y   -   -   -   -   -
artifact    CEO    Y   -   -   -   -   -   -   -   -
artifact    BE     -   -   -   -   Y   -   -   -   -
artifact    QA     -   -   -   -   -   -   -   Y   -
artifact    RE     -   -   -   -   -   -   -   -   Y
attached    BE     -   Y   -   -   Y   -   -   -   -
attached    DO     -   Y   -   -   -   -   Y   -   -
attached    RE     -   -   -   Y   -   -   -   -   Y
mail        CEO    Y   -   Y   -   -   -   -   -   -
mail        IT     Y   Y   -   -   -   -   -   -   -
mail        FE     -   Y   -   -   -   Y   -   -   -
mail        QA     -   Y   -   -   -   -   -   Y   -
"""

SHORT = dict(
    zip(
        ("CEO", "IT", "HR", "PM", "BE", "FE", "DO", "QA", "RE"),
        (CEO, IT, HR, PM, BACKEND, FRONTEND, DEVOPS, QA, RESEARCH),
        strict=True,
    )
)
_ROWS = [line.split() for line in READERS.strip().splitlines()[1:]]
READS = {
    (text, SHORT[writer]): {agent for agent, cell in zip(AGENTS, cells, strict=True) if cell == "Y"}
    for text, writer, *cells in _ROWS
}

# By hand (decision "First audit: people"): what becomes of a change, by who makes it. It gives or
# takes a right of agents, gives one to a role that nobody holds, changes a setting of the Board,
# gives or takes a right of a user, or is the password of another user who has rights.
WIDENS = """
who             gives   takes   gives_later setting gives_user takes_user password
only_board      at_once at_once at_once     at_once at_once    at_once    at_once
one_of_board    waits   at_once waits       at_once waits      at_once    refused
hr              waits   at_once waits       refused refused    refused    refused
reviewer        refused refused refused     refused refused    refused    refused
observer        refused refused refused     refused refused    refused    refused
no_group        refused refused refused     refused refused    refused    refused
not_a_member    refused refused refused     refused refused    refused    refused
"""
_LINES = [line.split() for line in WIDENS.strip().splitlines()]
OUTCOMES = {
    (who, change): cell
    for who, *cells in _LINES[1:]
    for change, cell in zip(_LINES[0][1:], cells, strict=True)
}
