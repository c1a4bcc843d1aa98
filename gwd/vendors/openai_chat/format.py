"""What other rooms have to know of the chat completions format."""

from typing import Final

from gwd.core.vendor_format import VendorFormat

FORMAT: Final = VendorFormat(
    name="openai_chat",
    family="openai_chat",
    fetches=frozenset(("image",)),
    tiers_of=frozenset(("openai_responses",)),
    chosen_by_vendor=("service_tier",),
    assumed_searches=1,
)
