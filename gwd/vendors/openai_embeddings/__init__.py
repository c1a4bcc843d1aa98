"""openai_embeddings: the embeddings format, spoken by OpenAI and by most other servers.

Owns: building its calls, decoding its answers, reading its errors.
Does not own: HTTP, retries, money; the form in which a client wants its vectors.
Invariants: floats are always asked for; vectors are in the order of the inputs, one for each.
Speaks to: core, the shared tools of the vendors.
"""

from gwd.vendors.openai_embeddings.adapter import ADAPTER

__all__ = ["ADAPTER"]
