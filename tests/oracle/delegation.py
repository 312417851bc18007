"""Which agent delegates to which in SoloQueue (Spec: groups 4).

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
ALIASES = {"coding.dev": "coding.developer"}  # Spec: groups 7

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
SKILLS = {"investment.analyst": ("web_search", "financial_calculator")}  # Spec: groups 12
