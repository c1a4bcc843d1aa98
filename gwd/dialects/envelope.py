"""The chat-style error envelope, used by every route but /messages."""

from typing import Any

import msgspec

from gwd.core.errors import GatewayError, UpstreamFailed
from gwd.core.events import Finished

_GENERIC = "something went wrong in the gateway; try again, and quote request {} if it persists"


def error_object(error: GatewayError, request_id: str) -> dict[str, Any]:
    """What stands under `error`. A 500 says nothing about its cause: that is for the operator's log."""
    if error.status == 500:
        return {
            "type": error.type,
            "code": error.code,
            "message": _GENERIC.format(request_id),
            "param": None,
            "status": 500,
            "metadata": {},
        }
    return {
        "type": error.type,
        "code": error.code,
        "message": error.message,
        "param": error.param,
        "status": error.status,
        "metadata": error.metadata or {},
    }


def ended_in_error(finished: Finished) -> GatewayError:
    """What a client is told where the vendor ends its answer with an error in place of a reason to stop."""
    word = finished.upstream_reason or "error"
    return UpstreamFailed(f"the vendor ended its answer with `{word}`; please try again")


def choice_error(finished: Finished) -> dict[str, Any]:
    """The error of a whole answer, beside the text that came before it."""
    error = ended_in_error(finished)
    return {"code": error.code, "type": error.type, "message": error.message}


def error_body(error: GatewayError, request_id: str) -> bytes:
    """The JSON body of an HTTP error."""
    return msgspec.json.encode({"error": error_object(error, request_id)})
