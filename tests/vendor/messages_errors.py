"""The wordings of the Messages API's refusals that occur in several places."""

from gwd.demo.refusals import RefusedError


def refuse(message: str) -> RefusedError:
    return RefusedError(message, kind="invalid_request_error")


def required(path: str) -> RefusedError:
    return refuse(f"{path}: Field required")


def extra_input(path: str) -> RefusedError:
    return refuse(f"{path}: Extra inputs are not permitted")
