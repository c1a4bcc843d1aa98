"""How many things one request may hold, whatever dialect it speaks."""

from typing import Final

from gwd.core.errors import InvalidValue
from gwd.core.request import Message, ToolResultPart

MAX_PARTS: Final = 100_000
"""Messages and parts in all: no conversation that fits a model has as many."""

MAX_STOPS: Final = 1_000


def checked_messages(messages: tuple[Message, ...], param: str) -> tuple[Message, ...]:
    """The messages. Raises InvalidValue for more than any model reads."""
    count = len(messages)
    for message in messages:
        count += len(message.parts)
        for part in message.parts:
            if isinstance(part, ToolResultPart):
                count += len(part.parts)
    if count > MAX_PARTS:
        raise InvalidValue(
            f"`{param}` holds more than {MAX_PARTS} messages and parts; send fewer, larger ones",
            param=param,
        )
    return messages


def checked_stops(stops: tuple[str, ...], param: str) -> tuple[str, ...]:
    """The stop sequences. Raises InvalidValue for too many."""
    if len(stops) > MAX_STOPS:
        raise InvalidValue(f"`{param}` must hold at most {MAX_STOPS} texts", param=param)
    return stops
