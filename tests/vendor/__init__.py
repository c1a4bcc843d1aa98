"""The simulated vendor as strict as the real ones: what they refuse, with their words.

    async with StrictVendor() as vendor: ...

The vendor itself (`gwd.demo`) answers whatever it can read and ships with the daemon; the checks live here, because
only tests need them. A check raises `RefusedError` for what the real vendor refuses; `CHECKS` names them by format.
"""

from collections.abc import Mapping
from typing import Any, Final

from gwd.demo import Check, FormatName, ModelTraits, SimulatedVendor
from gwd.demo.wire import Json
from tests.vendor.chat_checks import check_chat
from tests.vendor.embeddings_checks import check_embeddings
from tests.vendor.gemini_checks import check_gemini, check_gemini_embeddings
from tests.vendor.messages_checks import check_messages_request
from tests.vendor.responses_checks import check_responses


def _messages(body: Json, headers: Mapping[str, str], traits: ModelTraits) -> None:
    check_messages_request(body, headers, traits, counts_only=False)


def _count_tokens(body: Json, headers: Mapping[str, str], traits: ModelTraits) -> None:
    check_messages_request(body, headers, traits, counts_only=True)


CHECKS: Final[dict[FormatName, Check]] = {
    "chat": lambda body, _, traits: check_chat(body, traits),
    "messages": _messages,
    "count_tokens": _count_tokens,
    "responses": lambda body, _, traits: check_responses(body, traits),
    "embeddings": lambda body, _, traits: check_embeddings(body, traits),
    "gemini": lambda body, _, traits: check_gemini(body, traits),
    "gemini_embeddings": lambda body, _, traits: check_gemini_embeddings(body, traits),
}


class StrictVendor(SimulatedVendor):
    """A simulated vendor with the checks of every format."""

    def __init__(self, **wishes: Any) -> None:
        super().__init__(checks=CHECKS, **wishes)
