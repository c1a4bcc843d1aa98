"""Conversations that a vendor keeps (`thread`): not here, where every request holds its whole history."""

from typing import Any, ClassVar

from gwd.core.errors import UnsupportedParameter


class ThreadRefused(UnsupportedParameter):
    """`details` are what the vendor's SDK looks for: its helpers then send the whole history without a thread."""

    details: ClassVar[dict[str, Any]] = {
        "error_code": "thread_unsupported_request",
        "unsupported": ["thread"],
    }


def refuse_thread(body: dict[str, Any]) -> None:
    """Raises ThreadRefused. Left out unnoticed, the field would take the earlier turns with it."""
    if body.get("thread") is not None:
        raise ThreadRefused(
            "`thread` is not supported: nothing is stored here, send the whole conversation in `messages`",
            param="thread",
        )
