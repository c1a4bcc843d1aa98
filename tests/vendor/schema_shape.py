"""Whether a JSON schema is one: each word that the vendors read has a value of its type."""

from typing import Any

from gwd.demo.wire import Json, is_whole_number

_KINDS = ("array", "boolean", "integer", "null", "number", "object", "string")
_SCHEMAS = ("items", "additionalProperties", "not")
_LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_OBJECTS_OF_SCHEMAS = ("properties", "$defs", "definitions")
_TEXTS = ("$ref", "format", "pattern", "title", "description")
_SIZES = ("minLength", "maxLength", "minItems", "maxItems")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


def misshapen(schema: Json) -> str | None:
    """What is wrong with the first word that cannot stand as it does, in words; None for a schema."""
    for word, value in schema.items():
        if (fault := _fault(word, value)) is not None:
            return fault
    return None


def _fault(word: str, value: Any) -> str | None:
    if word == "type":
        kinds = value if isinstance(value, list) else [value]
        return next((f"{kind!r} is not a type" for kind in kinds if kind not in _KINDS), None)
    if word in _SCHEMAS:
        return _inner(word, value)
    if word in _LISTS_OF_SCHEMAS:
        if not isinstance(value, list) or not value:
            return f"{value!r} is not a list of schemas under {word!r}"
        return next(filter(None, (_inner(word, part) for part in value)), None)
    if word in _OBJECTS_OF_SCHEMAS:
        if not isinstance(value, dict):
            return f"{value!r} is not an object under {word!r}"
        return next(filter(None, (_inner(word, part) for part in value.values())), None)
    if not _is_valid(word, value):
        return f"{value!r} is not valid under {word!r}"
    return None


def _inner(word: str, part: Any) -> str | None:
    if isinstance(part, bool):
        return None
    if not isinstance(part, dict):
        return f"{part!r} is not a schema under {word!r}"
    return misshapen(part)


def _is_valid(word: str, value: Any) -> bool:
    if word == "required":
        return isinstance(value, list) and all(isinstance(name, str) for name in value)
    if word == "enum":
        return isinstance(value, list)
    if word in _TEXTS:
        return isinstance(value, str)
    if word in _SIZES:
        return is_whole_number(value) and value >= 0
    if word in _NUMBERS:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and (word != "multipleOf" or value > 0)
    return True
