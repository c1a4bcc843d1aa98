"""openai_responses: the responses format, spoken by OpenAI and by servers that follow it.

Owns: building its calls, decoding its answers, reading its errors.
Does not own: HTTP, retries, money; what a client speaks.
Invariants: nothing is stored at the vendor; reasoning goes back only as the vendor's own encrypted content.
Speaks to: core, the shared tools of the vendors.
"""

from gwd.vendors.openai_responses.adapter import ADAPTER

__all__ = ["ADAPTER"]
