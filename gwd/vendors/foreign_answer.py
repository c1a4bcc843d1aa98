"""What an answer of status 200 looks like that is not of the format its provider names: who answers there instead.

Looked at only when an answer could not be read. Nothing of the answer itself is repeated.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gwd.core.errors import Fault
from gwd.core.lenient_json import UNREADABLE
from gwd.vendors.second_reading import read_any

MAX_LOOK: Final = 64 * 1024
"""Of an answer no more is looked at: what is longer and no web page is not judged."""

_PAGE: Final = (b"<", b"\xef\xbb\xbf<")
_OLLAMA: Final = "Ollama's own format"


def named(fault: Fault, beginning: bytes, adapter: str) -> Fault:
    """The fault of an answer that could not be read, or one that names what the answer is instead."""
    if fault.reason != "upstream_error" or fault.status is not None:
        return fault  # the vendor has said itself what is wrong
    text = beginning.strip()
    if text.startswith(_PAGE):
        message = "the vendor answered with a web page; the provider's base_url has to name where its API is served"
    elif (look := _look(text)) is None or look == adapter:
        return fault
    elif look == _OLLAMA:
        message = f"the vendor answered in {_OLLAMA}; the base_url of its OpenAI format ends in /v1"
    else:
        message = (
            f"the vendor answered in the format of {look}, and its provider has the adapter {adapter}:"
            " change its adapter or its base_url"
        )
    return msgspec.structs.replace(fault, message=message, detail="other_format")


def _look(text: bytes) -> str | None:
    """The adapter whose format the first value of an answer, whole or streamed, is of."""
    value = _first_value(text[:MAX_LOOK])
    if isinstance(value, list) and value:
        value = value[0]  # a stream of Gemini's without `alt=sse`
    if not isinstance(value, Mapping):
        return None
    kind, object_ = str(value.get("type")), str(value.get("object"))
    if isinstance(value.get("choices"), list):
        return "openai_chat"
    if kind == "message_start" or (kind == "message" and isinstance(value.get("content"), list)):
        return "anthropic_messages"
    if object_ == "response" or kind.startswith("response."):
        return "openai_responses"
    if isinstance(value.get("candidates"), list):
        return "gemini"
    if object_ == "list" and isinstance(value.get("data"), list):
        return "openai_embeddings"
    if isinstance(value.get("done"), bool) and ("message" in value or "response" in value):
        return _OLLAMA
    return None


def _first_value(text: bytes) -> Any:
    """A whole JSON text, or the first line of several that holds one; events carry theirs behind `data:`."""
    for part in (text, *text.splitlines()):
        try:
            return read_any(part.removeprefix(b"data:"))
        except UNREADABLE:
            continue
    return None
