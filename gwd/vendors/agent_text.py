"""Text that a vendor's own coding agent adds for its vendor alone."""

from typing import Final

# The first line of the system text; it changes with every call and would defeat prefix caching elsewhere.
_BILLING_LINE: Final = "x-anthropic-billing-header:"


def without_billing_line(text: str) -> str:
    """The text as another vendor should see it."""
    return text.partition("\n")[2] if text.startswith(_BILLING_LINE) else text
