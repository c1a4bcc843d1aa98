"""demo: the simulated vendor, a real HTTP server that speaks five formats.

    async with SimulatedVendor() as vendor:
        vendor.script.next(Behaviour(status=429, retry_after="3"), "error=overloaded error_after=4")
        ...  # call vendor.url (Anthropic's base URL), vendor.openai_url or vendor.gemini_url with any HTTP client
        assert vendor.calls.last.body["stream"] is True

The formats: chat completions, messages, responses, Gemini (its embeddings too), OpenAI's embeddings.
Owns: plausible answers (the same request gets the same text, whole and streamed), their token counts by the rule in
`tokens`, error bodies in the vendors' words, and scripted faults (`Behaviour`, `Script`). What a real vendor refuses
is looked at by `checks`, which the caller gives; without them whatever can be read is answered.
A caller without access to the script asks for a fault in the request itself: `[[fault: status=429 retry_after=3]]`
in the last user message, the header `x-demo-fault`, or `model#status=429,retry_after=3`. `times=1` makes only the first
such call fail. `behaviour` lists every field and flag.
Answers about tools: a tool is called when it is forced or the last message names it or says "tool"; two are called
when the message says "both", "each", "twice" or "parallel"; results of tools are quoted.
Does not own: anything the gateway does; it shares no code with the adapters it tests, `core.clock` apart.
Invariants: a stream without deviation carries the tokens it reports, one per event; what
cannot be read, and what a check refuses, gets that vendor's error body; every call is recorded in `vendor.calls`,
before it is answered.
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
from gwd.demo.formats import Check, FormatName
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
    "Check",
    "FormatName",
    "ModelTraits",
    "PlannedCall",
    "Script",
    "SimulatedVendor",
    "parse",
]
