"""Who may delegate to whom in SoloQueue: seed 003 §4.1, §4.2; 4.3 is only the outer bound.

Rows delegate, columns receive: Y allowed, - refused.
"""

ADDRESSES = (
    "investment.leader",
    "investment.analyst",
    "investment.trader",
    "coding.leader",
    "coding.architect",
    "coding.developer",
)
HANDLES = {address: address.replace(".", "_") for address in ADDRESSES}
ALIASES = {"coding.dev": "coding.developer"}  # §4.2's example calls it so

MATRIX = """
from                leader analyst trader | leader architect developer
investment.leader   -      Y       Y        Y      -         -
investment.analyst  -      -       -        -      -         -
investment.trader   -      -       -        -      -         -
coding.leader       Y      -       -        -      Y         Y
coding.architect    -      -       -        -      -         -
coding.developer    -      -       -        -      -         -
"""

# The same with `member_delegation: true` for a group: its members may delegate within it.
WITH_MEMBER_DELEGATION = {
    ("investment.analyst", "investment.trader"),
    ("investment.trader", "investment.analyst"),
    ("coding.architect", "coding.developer"),
    ("coding.developer", "coding.architect"),
}

ALLOWED = {
    (line.split()[0], ADDRESSES[column])
    for line in MATRIX.strip().splitlines()[1:]
    for column, cell in enumerate(line.split()[1:])
    if cell == "Y"
}


def expected(source: str, target: str) -> bool:
    """Whether delegate_to is allowed between two addresses."""
    return (source, target) in ALLOWED


LEADERS = {"investment": "investment.leader", "coding": "coding.leader"}
SKILLS = {"investment.analyst": ("web_search", "financial_calculator")}  # §3.2; nobody else's given
