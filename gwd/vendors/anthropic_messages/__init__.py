"""anthropic_messages: the adapter for vendors that speak Anthropic's messages format.

Owns: build (one POST /v1/messages), decode of whole and streamed answers, its faults; what this format takes
and refuses; the pure half of the signature memory (signatures.py).
Does not own: HTTP, retries, the memory itself, money.
Invariants: what a client of the same family sent in fields we do not know goes out unchanged; every call in the
history has its result right behind it; thinking never goes out in a combination the vendor refuses.
Speaks to: core only.
"""

from gwd.vendors.anthropic_messages.adapter import ADAPTER

__all__ = ["ADAPTER"]
