"""Pictures and files of a request: where the question begins, and whether an endpoint fetches by address."""

from collections.abc import Sequence

from gwd.core.request import Message
from gwd.core.target import Flags
from gwd.core.vendor_format import MediaKind, VendorFormat


def question_begins(messages: Sequence[Message]) -> int:
    """The place behind the assistant's last turn; an answer that the client has begun belongs to the question."""
    end = len(messages)
    while end and messages[end - 1].role in ("assistant", "system"):
        end -= 1
    for place in range(end - 1, -1, -1):
        if messages[place].role == "assistant":
            return place + 1
    return 0


def takes_address(format_: VendorFormat, flags: Flags, kind: MediaKind) -> bool:
    """Whether an endpoint fetches a picture or file itself; the flag says so, else the custom of its format."""
    said = flags.takes_image_urls if kind == "image" else flags.takes_file_urls
    return kind in format_.fetches if said is None else said
