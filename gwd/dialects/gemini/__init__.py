"""gemini: the dialect of Google's own SDKs and of its command line agent.

Owns: parse of generateContent and its kin, whole answers and chunks, token counts, embeddings, the error envelope.
Does not own: the list of models, paths and queries, counting tokens, anything a vendor needs.
Invariants: names are read in both of Google's forms; fields that only Google knows are kept for its own format; a call
has an id whether its client sends one or not; whose signature a part carries stands in the signature (provenance.py);
thoughts are shown only to who asks for them; the last chunk waits for `Settled`.
Speaks to: core only.
"""

from gwd.dialects.gemini.dialect import DIALECT, METHODS, Gemini

__all__ = ["DIALECT", "METHODS", "Gemini"]
