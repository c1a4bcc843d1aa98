"""Items that only one vendor format knows (compaction …): they travel whole between its clients and its vendors.

Inside they are a text whose extras hold the item under `item`; the text is what everyone else is told of it.
"""

from typing import Final

# Calls of the tools that a vendor runs itself: none are offered here, so the vendor would not know what they are about.
_TOOL_ENDINGS: Final = ("_call", "_output", "_tools")
_TOOL_BEGINNINGS: Final = ("mcp_", "tool_search")


def is_vendor_item(kind: str) -> bool:
    """Whether an item of a kind that has no place in the internal form is kept for its own family."""
    return bool(kind) and not (kind.endswith(_TOOL_ENDINGS) or kind.startswith(_TOOL_BEGINNINGS))
