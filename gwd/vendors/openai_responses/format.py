"""What other rooms have to know of the responses format, and the name of its signatures."""

from typing import Final

from gwd.core.vendor_format import VendorFormat

SIGNATURE_FORMAT: Final = "openai-responses-v1"
FORMAT: Final = VendorFormat(
    name="openai_responses",
    family="openai_responses",
    no_field_for=frozenset(
        (
            *("seed", "frequency_penalty", "presence_penalty", "repetition_penalty", "min_p"),
            *("logit_bias", "top_k", "stop"),
        )
    ),
    least_output=16,
    fetches=frozenset(("image", "file")),
    tiers_of=frozenset(("openai_chat",)),
    chosen_by_vendor=("service_tier",),
)
