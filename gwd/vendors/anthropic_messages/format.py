"""What other rooms have to know of the messages format, and the name of its signatures."""

from typing import Final

from gwd.core.vendor_format import VendorFormat

SIGNATURE_FORMAT: Final = "anthropic-claude-v1"
FORMAT: Final = VendorFormat(
    name="anthropic_messages",
    auth="x-api-key",
    model_list="anthropic",
    family="anthropic_messages",
    no_field_for=frozenset(
        (
            *("seed", "frequency_penalty", "presence_penalty", "repetition_penalty", "min_p"),
            *("logit_bias", "logprobs", "top_logprobs"),
        )
    ),
    fetches=frozenset(("image", "file")),
    chosen_by_vendor=("service_tier", "inference_geo"),
    has_free_tools=True,
)
