"""Where errors stand in answers of status 200 of OpenAI-format servers; what they say is read as in every format."""

from typing import Final

from gwd.core.errors import Fault
from gwd.vendors import error_body, faults

_WITHOUT: Final = "the vendor sent an error without a message"


def fault_inside(error: object) -> Fault:
    """The fault of an error object in an answer of status 200; a numeric code is the status it stands for."""
    read = error_body.of({"error": error})
    return faults.fault_of_error(read, read.named_status(), {}, without_message=_WITHOUT)


def error_in(value: object) -> object | None:
    """The error object of a decoded answer, in any of the usual places; None if it holds none."""
    if not isinstance(value, dict):
        return None
    if value.get("error"):
        found: object = value["error"]
        return found
    if (base := error_body.base_error(value)) is not None:
        return base
    if value.get("object") == "error" or ("choices" not in value and value.get("message")):
        return value
    return None
