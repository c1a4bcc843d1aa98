"""Where a conversation was served last: the vendor's account there has its prompt in the cache.

Memory only, and only an order: whatever is forgotten, or no longer eligible, costs a prompt that is not cached.
"""

from collections import OrderedDict
from typing import Final

from gwd.core.request import Embed, Message, Request, TextPart
from gwd.core.target import Target

KEPT_S: Final = 600.0
MAX_CONVERSATIONS: Final = 100_000
_BEGINNING: Final = 256  # characters

Conversation = tuple[str, str | None, str | int]
"""Whose it is (organization, then workspace or family of keys), and which: its session, or a hash of how it begins."""

Seat = tuple[str, str]
"""The ids of an endpoint and of a credential."""


def conversation_of(
    request: Request, *, organization_id: str, workspace_id: str | None, family_id: str
) -> Conversation | None:
    """The conversation that a request goes on with; None for embeddings, which have none.

    A session is one for its workspace. Requests without a session are one conversation of one key if they name one
    `prompt_cache_key`, else if the first message and the first question begin alike; of these texts nothing but a hash
    is kept.
    """
    if isinstance(request.body, Embed):
        return None
    session_id = request.sender.session_id
    if session_id is not None:
        return organization_id, workspace_id, session_id
    named = request.extras.get("prompt_cache_key") if request.extras else None
    if isinstance(named, str):
        return organization_id, family_id, hash(named[:_BEGINNING])
    messages = request.body.messages
    question = next((message for message in messages if message.role == "user"), None)
    beginnings = _beginning(messages[0] if messages else None), _beginning(question)
    return organization_id, family_id, hash(beginnings)


def no_conversation() -> None:
    """Of what is not asked in one."""


class Stickiness:
    """One for the node; used from the event loop only. Times are the monotonic clock's seconds."""

    def __init__(self, at_most: int = MAX_CONVERSATIONS) -> None:
        self._at_most = at_most
        # In the order in which they were noted, which is that of their ends.
        self._seats: OrderedDict[tuple[Conversation, str], tuple[float, Seat]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._seats)

    def seat(self, conversation: Conversation, model: str, now_s: float) -> Seat | None:
        """Who served this conversation's last answer of a model, if that was in the last ten minutes."""
        found = self._seats.get((conversation, model))
        return found[1] if found is not None and now_s < found[0] else None

    def note(self, conversation: Conversation, target: Target, now_s: float) -> None:
        """It was served there now."""
        seats, key = self._seats, (conversation, target.model)
        seats[key] = now_s + KEPT_S, (target.endpoint_id, target.credential.id)
        seats.move_to_end(key)
        # One comes and two may go: what is over is cleared away in time, and no request clears away all of it.
        for _ in range(2):
            if len(seats) > self._at_most or next(iter(seats.values()))[0] <= now_s:
                seats.popitem(last=False)


def _beginning(message: Message | None) -> str:
    """How the first text of a message begins."""
    if message is None:
        return ""
    for part in message.parts:
        if isinstance(part, TextPart):
            return part.text[:_BEGINNING]
    return ""
