"""A refused request, and the error body of each vendor."""

from gwd.demo.behaviour import Behaviour, ErrorKind
from gwd.demo.wire import Json


class RefusedError(Exception):
    """The vendor says no. `kind`, `code` and `param` go into the body as that vendor has them."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str | None = None,
        code: str | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.kind = kind
        self.code = code
        self.param = param


_OPENAI: dict[int, tuple[str, str | None, str]] = {
    400: ("invalid_request_error", None, "The request was refused."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    403: ("invalid_request_error", "model_not_found", "The project has no access to this model."),
    404: ("invalid_request_error", "model_not_found", "The model does not exist."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests. Please try again."),
    500: ("server_error", None, "The server had an error while processing your request."),
    503: ("service_unavailable_error", "server_is_overloaded", "The engine is overloaded."),
    529: ("service_unavailable_error", "server_is_overloaded", "The engine is overloaded."),
}
_ANTHROPIC: dict[int, tuple[str, str]] = {
    400: ("invalid_request_error", "The request was refused."),
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "Your credit balance is too low to access the API."),
    403: ("permission_error", "Your API key has no permission for this resource."),
    404: ("not_found_error", "Not Found"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your rate limit."),
    500: ("api_error", "Internal server error"),
    504: ("timeout_error", "The request timed out."),
    529: ("overloaded_error", "Overloaded"),
}
_GEMINI: dict[int, tuple[str, str]] = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: ("UNAUTHENTICATED", "Request had invalid authentication credentials."),
    403: ("PERMISSION_DENIED", "The caller does not have permission."),
    404: ("NOT_FOUND", "Requested entity was not found."),
    429: ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    500: ("INTERNAL", "An internal error has occurred. Please retry."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    504: ("DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
}
_STATUS_OF: dict[ErrorKind, int] = {
    "server_error": 500,
    "overloaded": 529,
    "rate_limit": 429,
    "quota": 429,
    "invalid_request": 400,
}


def openai_body(refused: RefusedError) -> Json:
    return {
        "error": {
            "message": refused.message,
            "type": refused.kind or "invalid_request_error",
            "param": refused.param,
            "code": refused.code,
        }
    }


def anthropic_body(refused: RefusedError, request_id: str) -> Json:
    return {
        "type": "error",
        "error": {
            "type": refused.kind or _anthropic_default(refused.status)[0],
            "message": refused.message,
        },
        "request_id": request_id,
    }


def gemini_body(refused: RefusedError) -> Json:
    return {
        "error": {
            "code": refused.status,
            "message": refused.message,
            "status": refused.kind or _gemini_default(refused.status)[0],
        }
    }


def openai_scripted(behaviour: Behaviour, status: int | None = None) -> RefusedError:
    """The vendor's own words for a scripted status, or for the error in the middle of a stream."""
    status = _status(behaviour, status)
    kind, code, message = _OPENAI.get(status) or _OPENAI[500 if status >= 500 else 400]
    if behaviour.code == "insufficient_quota" or behaviour.error == "quota":
        kind, code = "insufficient_quota", "insufficient_quota"
        message = "You exceeded your current quota, please check your plan and billing details."
    return RefusedError(
        behaviour.message or message,
        status=status,
        kind=behaviour.error_type or kind,
        code=behaviour.code or code,
    )


def anthropic_scripted(behaviour: Behaviour, status: int | None = None) -> RefusedError:
    status = _status(behaviour, status)
    kind, message = _anthropic_default(status)
    if behaviour.code == "insufficient_quota" or behaviour.error == "quota":
        kind, message = "billing_error", _ANTHROPIC[402][1]
    return RefusedError(
        behaviour.message or message, status=status, kind=behaviour.error_type or kind
    )


def gemini_scripted(behaviour: Behaviour, status: int | None = None) -> RefusedError:
    if status is None and behaviour.error == "overloaded":
        status = 503
    status = _status(behaviour, status)
    kind, message = _gemini_default(status)
    if behaviour.code == "insufficient_quota" or behaviour.error == "quota":
        message = "You exceeded your current quota, please check your plan and billing details."
    return RefusedError(
        behaviour.message or message, status=status, kind=behaviour.error_type or kind
    )


def _status(behaviour: Behaviour, status: int | None) -> int:
    if status is not None:
        return status
    return _STATUS_OF[behaviour.error] if behaviour.error else 500


def _gemini_default(status: int) -> tuple[str, str]:
    fallback = 400 if status < 500 else 503 if status > 500 else 500
    return _GEMINI.get(status) or _GEMINI[fallback]


def _anthropic_default(status: int) -> tuple[str, str]:
    return _ANTHROPIC.get(status) or _ANTHROPIC[500 if status >= 500 else 400]
