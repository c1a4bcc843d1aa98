"""The chat-style error envelope (api.md 7.1), used by every route but /messages."""

from typing import Any

import msgspec

from gwd.core.errors import GatewayError

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


def error_body(error: GatewayError, request_id: str) -> bytes:
    """The JSON body of an HTTP error."""
    return msgspec.json.encode({"error": error_object(error, request_id)})
