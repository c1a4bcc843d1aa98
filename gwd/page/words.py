"""The page's own sentences: what was done, and what an error is called."""

from typing import Final

from gwd.core.errors import GatewayError

DID: Final = {
    "disabled": "The key is disabled: its next request is refused.",
    "enabled": "The key is enabled.",
    "ended": "The old key has ended: its next request is refused.",
    "deleted": "It is deleted.",
    "saved": "The changes are saved.",
    "made": "It is made.",
    "signed_out": "You are signed out.",
    "session_over": "Your session has ended. Sign in again; nothing was changed.",
}
"""By the code that stands in the query after something was done; `views` add theirs."""

_HEADINGS: Final = {
    400: "That does not work",
    401: "Sign in again",
    403: "Not allowed",
    404: "No such {}",
    409: "It has changed meanwhile",
    413: "Too much for one form",
    415: "That is no form",
    429: "Too many attempts",
    500: "Something went wrong here",
    503: "Not now",
}
_RETIRED: Final = "It was deleted, or it belongs to another organization."


def heading(error: GatewayError, noun: str) -> str:
    """What an error is called on its page."""
    if error.code == "report_too_large":
        return "Too much for one page: narrow the time"
    return _HEADINGS.get(error.status, "That does not work").format(noun)


def message(error: GatewayError, noun: str) -> str:
    """What the error page says; things that are unknown and those of others get the same sentence."""
    if error.status == 404:
        return _RETIRED if noun != "page" else "There is nothing at this address."
    text = error.message[:1].upper() + error.message[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
