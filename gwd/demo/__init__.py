"""demo: the simulated vendor, a real HTTP server that speaks chat completions, messages, responses and embeddings.

    async with SimulatedVendor() as vendor:
        vendor.script.next(Behaviour(status=429, retry_after="3"), "error=overloaded error_after=4")
        ...  # call vendor.url (Anthropic's base URL) or vendor.openai_url with any HTTP client
        assert vendor.calls.last.body["stream"] is True

Owns: plausible answers (the same request gets the same text, whole and streamed), their token counts by the rule in
`tokens`, the strictness of the real vendors with their error bodies, and scripted faults (`Behaviour`, `Script`).
A caller without access to the script asks for a fault in the request itself: `[[fault: status=429 retry_after=3]]`
in the last user message, the header `x-demo-fault`, or `model#status=429,retry_after=3`. `times=1` makes only the first
such call fail. `behaviour` lists every field and flag.
Answers about tools: a tool is called when it is forced or the last message names it or says "tool"; two are called
when the message says "both", "each", "twice" or "parallel"; results of tools are quoted.
Does not own: anything the gateway does; it shares no code with the adapters it tests, `core.clock` apart.
Invariants: a stream without deviation carries the tokens it reports, one per event; a request the real vendor
refuses is refused with that vendor's error body; every call is recorded in `vendor.calls`, before it is answered.
Speaks to: core only.
"""

from gwd.demo.behaviour import (
    BEFORE_HEADERS,
    FLAGS,
    Behaviour,
    BehaviourError,
    PlannedCall,
    parse,
)
from gwd.demo.calls import Call, Calls
from gwd.demo.exchange import FAULT_HEADER
from gwd.demo.script import Script
from gwd.demo.server import SimulatedVendor
from gwd.demo.traits import DEFAULT_MODELS, ModelTraits

__all__ = [
    "BEFORE_HEADERS",
    "DEFAULT_MODELS",
    "FAULT_HEADER",
    "FLAGS",
    "Behaviour",
    "BehaviourError",
    "Call",
    "Calls",
    "ModelTraits",
    "PlannedCall",
    "Script",
    "SimulatedVendor",
    "parse",
]
