"""What chat completions, responses and embeddings have in common: credentials, errors and headers."""

from collections.abc import Mapping

from gwd.demo.refusals import RefusedError


def check_bearer(headers: Mapping[str, str], keys: frozenset[str] | None) -> None:
    scheme, _, credential = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not credential.strip():
        raise RefusedError(
            "You didn't provide an API key. You need to provide your API key in an Authorization header "
            "using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
            status=401,
        )
    if keys is not None and credential.strip() not in keys:
        raise RefusedError(
            f"Incorrect API key provided: {credential[:3]}***.", status=401, code="invalid_api_key"
        )


def unknown_model(name: str) -> RefusedError:
    return RefusedError(
        f"The model `{name}` does not exist or you do not have access to it.",
        status=404,
        code="model_not_found",
    )


def answer_headers(request_id: str) -> dict[str, str]:
    return {
        "x-request-id": request_id,
        "openai-version": "2020-10-01",
        "openai-processing-ms": "12",
        "openai-organization": "org-demo",
    }
