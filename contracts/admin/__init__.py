"""The pages of contracts; importing them registers them."""

from contracts.admin import contracts as contracts
