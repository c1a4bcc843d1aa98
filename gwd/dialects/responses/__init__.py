"""responses: the dialect of POST /responses, which Codex and the responses SDKs speak.

Owns: input items, tool namespaces, custom tools, the sealed form of reasoning signatures, the event sequence.
Does not own: the memory of emitted items (replay holds it; `remembering` takes it).
Invariants: sequence numbers have no gap; exactly one terminal event; every key of the response object is in every one.
Speaks to: core, the shared front door of the dialects.
"""

from gwd.dialects.responses.dialect import DIALECT, CallerItems, Responses
from gwd.dialects.responses.parse import ResponsesRequest
from gwd.dialects.responses.render import ResponsesRenderer

__all__ = ["DIALECT", "CallerItems", "Responses", "ResponsesRenderer", "ResponsesRequest"]
