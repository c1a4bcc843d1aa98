"""Where errors stand in Gemini's answers of status 200; what they say is read as in every format."""

from typing import Final

from gwd.core.errors import Fault
from gwd.vendors import error_body, faults

_WITHOUT: Final = "the vendor sent an error without a message"


def fault_inside(error: object) -> Fault:
    """The fault of an error object in an answer of status 200; its `code` is the status it stands for."""
    read = error_body.of({"error": error})
    return faults.fault_of_error(read, read.named_status(), {}, without_message=_WITHOUT)


def error_in(value: object) -> object | None:
    """The error object of a decoded answer, which may be wrapped in a list; None if it holds none."""
    if isinstance(value, list):
        return next((found for item in value if (found := error_in(item)) is not None), None)
    return (value.get("error") or None) if isinstance(value, dict) else None
