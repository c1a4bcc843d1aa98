"""JSON schemas as this vendor's constrained decoder takes them: closed objects and plain keywords."""

from typing import Any, Final

_REFUSED: Final = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "if",
    "then",
    "else",
    "not",
)
_SCHEMA_MAPS: Final = ("properties", "$defs")
_SCHEMA_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")


def answer_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema for the constrained decoder: closed objects; keywords it refuses become part of the description."""
    cleaned = _cleaned(schema)
    cleaned.pop("$schema", None)
    return cleaned


def _cleaned(schema: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    notes = []
    for name, value in schema.items():
        if name in _REFUSED:
            notes.append(f"{name}: {_short(value)}")
        elif name in _SCHEMA_MAPS and isinstance(value, dict):
            out[name] = {key: _any(item) for key, item in value.items()}
        elif name in _SCHEMA_LISTS and isinstance(value, list):
            # The decoder knows anyOf only; for the values it may produce, oneOf means the same.
            out["anyOf" if name == "oneOf" else name] = [_any(item) for item in value]
        elif name == "items":
            out[name] = _any(value)
        elif name != "additionalProperties":
            out[name] = value
    if _is_object(out):
        out["additionalProperties"] = False
    if notes:
        text = out.get("description")
        out["description"] = (f"{text} " if isinstance(text, str) else "") + f"({'; '.join(notes)})"
    return out


def _any(value: object) -> Any:
    return _cleaned(value) if isinstance(value, dict) else value


def _is_object(schema: dict[str, Any]) -> bool:
    kind = schema.get("type")
    return (
        kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in schema
    )


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 200 else text[:200] + "…"
