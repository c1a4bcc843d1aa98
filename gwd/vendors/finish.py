"""The words with which vendors end an answer, of all formats in one table, and what they mean to a client.

A word that is not in the table never spoils what came before it: vendors add words faster than anybody reads about
them. Relays pass on the words of the vendor behind them, so every format knows those of all.
"""

from collections.abc import Sequence
from typing import Final

from gwd.core.events import FinishReason

_NO_WORDS: Final = ("", "null", "none")

WORDS: Final[dict[str, FinishReason]] = {
    **dict.fromkeys(
        (
            *("stop", "completed", "eos", "eos_token"),
            *("end_turn", "stop_sequence", "pause_turn"),
        ),
        "stop",
    ),
    **dict.fromkeys(
        (
            *("length", "max_tokens", "max_output_tokens", "model_length"),
            *("model_context_window_exceeded", "continuation"),
        ),
        "length",
    ),
    **dict.fromkeys(("tool_calls", "tool_use", "function_call"), "tool_calls"),
    **dict.fromkeys(
        (
            *("content_filter", "safety", "refusal", "sensitive", "recitation", "language"),
            *("blocklist", "prohibited_content", "spii", "model_armor", "escalation"),
            *("image_safety", "image_prohibited_content", "image_recitation"),
        ),
        "content_filter",
    ),
    **dict.fromkeys(
        (
            *("error", "network_error", "insufficient_system_resource", "timeout"),
            *("abort", "aborted", "cancelled", "canceled", "function_call_filter"),
            *("malformed_function_call", "unexpected_tool_call", "too_many_tool_calls"),
            *("missing_thought_signature", "malformed_response"),
        ),
        "error",
    ),
}
GEMINI_WORDS: Final[dict[str, FinishReason]] = {**WORDS, "other": "error"}
"""`OTHER` is Gemini's word for what went wrong; elsewhere it is one like any that is not known."""


def word_of(said: object) -> str | None:
    """The word a vendor said, or None: many write null as text, or send an empty one with every piece."""
    if said is None or said is False:
        return None
    word = str(said)
    return None if word.strip().lower() in _NO_WORDS else word


def meaning_of(word: str | None, words: dict[str, FinishReason] = WORDS) -> FinishReason | None:
    """What a word means by itself. Some servers add particulars behind a colon (`content_filter: SPII`)."""
    if word is None:
        return None
    return words.get(word.lower()) or words.get(word.lower().partition(":")[0].strip())


def reason_of(
    word: str | None,
    *,
    called: bool,
    called_whole: bool,
    words: dict[str, FinishReason] = WORDS,
) -> FinishReason | None:
    """The reason of an answer that ended with `word`. On a turn with calls these tell it: servers end it with `stop`,
    or with nothing at all. Under a word that is not known only a whole call does. None: no word, and no call."""
    meaning = meaning_of(word, words)
    if meaning not in (None, "stop", "tool_calls"):
        return meaning
    if called_whole or (called and (word is None or meaning is not None)):
        return "tool_calls"
    return None if word is None else "stop"


def matched_stop(stops: Sequence[str], *said: object) -> str | None:
    """The stop string that ended the answer, where one of the values said is one of the request's. Servers also put
    numbers there (of tokens) and stops of their own."""
    return next((stop for stop in said if isinstance(stop, str) and stop in stops), None)
