"""What other rooms have to know of Google's generateContent format, and the name of its signatures."""

from typing import Final

from gwd.core.vendor_format import VendorFormat

SIGNATURE_FORMAT: Final = "google-gemini-v1"
FORMAT: Final = VendorFormat(
    name="gemini",
    auth="x-goog-api-key",
    model_list="gemini",
    family="gemini",
    no_field_for=frozenset(("repetition_penalty", "min_p", "logit_bias", "verbosity")),
)
