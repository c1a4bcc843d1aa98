"""What the vendor refuses at embeddings: unknown fields, inputs that are no texts or token arrays, sizes."""

from gwd.demo.embeddings import inputs_of
from gwd.demo.refusals import RefusedError
from gwd.demo.traits import ModelTraits
from gwd.demo.wire import Json, is_whole_number
from tests.vendor.openai_fields import check_at_least, invalid_value, missing, unknown_parameter

_FIELDS = frozenset({"model", "input", "dimensions", "encoding_format", "user"})
_MAX_INPUTS = 2048


def check_embeddings(body: Json, traits: ModelTraits) -> None:
    for name in body:
        if name not in _FIELDS:
            raise unknown_parameter(name)
    if traits.kind != "embedding":
        raise RefusedError("You are not allowed to generate embeddings from this model", status=403)
    _check_input(body)
    check_at_least(body, "dimensions", 1)
    if (body.get("dimensions") or 1) > traits.dimensions:
        raise RefusedError(
            f"Invalid value for 'dimensions' = {body['dimensions']}. Must be less than or equal to "
            f"{traits.dimensions}.",
            param="dimensions",
        )
    if body.get("encoding_format") not in (None, "float", "base64"):
        raise invalid_value("encoding_format", body["encoding_format"], ("float", "base64"))


def _check_input(body: Json) -> None:
    if "input" not in body:
        raise missing("input")
    given = body["input"]
    if isinstance(given, list) and len(given) > _MAX_INPUTS and not is_whole_number(given[0]):
        raise RefusedError(
            f"Invalid 'input': array too long. Expected an array with maximum length {_MAX_INPUTS}, but "
            f"got an array with length {len(given)} instead.",
            code="array_above_max_length",
            param="input",
        )
    inputs = inputs_of(given)
    if not inputs or not all(_is_input(one) for one in inputs):
        raise RefusedError(
            "'$.input' is invalid. Expected a non-empty string, or an array of non-empty strings or token arrays."
        )


def _is_input(one: object) -> bool:
    if isinstance(one, list):
        return bool(one) and all(is_whole_number(number) for number in one)
    return isinstance(one, str) and bool(one)
