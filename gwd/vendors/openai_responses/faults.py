"""Errors inside responses of status 200: the codes that blame the request; the rest is read as in every format."""

from typing import Final

import msgspec

from gwd.core.errors import Fault
from gwd.vendors import error_body, faults

# Codes of a failed response that blame the request; anything else is the vendor's own trouble.
_CALLERS_FAULT: Final = (
    "invalid_",
    "image_",
    "empty_image",
    "unsupported_",
    "failed_to_download_image",
    "context_length_exceeded",
)
_WITHOUT: Final = "the vendor ended its answer with an error and said nothing about it"


def fault_inside(error: object) -> Fault:
    """The fault of a failed response, an error event or an error object in an answer of status 200."""
    read = error_body.of(error)
    status = read.named_status()
    if status is None and read.code is not None and read.code.startswith(_CALLERS_FAULT):
        read = msgspec.structs.replace(read, kind="invalid_request_error")
    return faults.fault_of_error(read, status, {}, without_message=_WITHOUT)
