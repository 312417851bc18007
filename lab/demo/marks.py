"""How contracts of the demo are known, so that the next day begins without them."""

MARK = "Demo:"
