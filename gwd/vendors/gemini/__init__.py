"""gemini: the adapter for vendors that speak Google's generateContent format.

Owns: build (one POST models/…:generateContent, or streamGenerateContent), decode of whole and streamed answers, its
faults, its embeddings; what this format takes and refuses; the pure half of the signature memory.
Does not own: HTTP, retries, the memory itself, money.
Invariants: every call in the history has exactly one result, in the order of the calls; a signature goes back on the
kind of part it came with; an answer without a finish reason is never taken for a complete one.
Speaks to: core only.
"""

from gwd.vendors.gemini.adapter import ADAPTER

__all__ = ["ADAPTER"]
