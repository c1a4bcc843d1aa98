"""JSON schemas as this vendor takes them: objects at the root, and plain ones for its constrained decoder."""

from typing import Any, Final

_ROOT_UNIONS: Final = ("anyOf", "oneOf", "allOf")
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
_SCHEMA_MAPS: Final = ("properties", "$defs", "definitions")
_SCHEMA_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")


def input_schema(schema: dict[str, Any] | None) -> dict[str, Any]:
    """A tool's parameters with an object at the root; a schema the vendor takes is returned as it is."""
    if schema is None:
        return {"type": "object", "properties": {}}
    if schema.get("type") == "object" and not any(name in schema for name in _ROOT_UNIONS):
        return schema
    root = _inlined(schema)
    merged = {name: value for name, value in root.items() if name not in _ROOT_UNIONS}
    merged["type"] = "object"
    for name in _ROOT_UNIONS:
        branches = [_inlined(branch, schema) for branch in _dicts(root.get(name))]
        if branches:
            _merge(merged, branches, all_hold=name == "allOf")
    merged.setdefault("properties", {})
    return merged


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


def _inlined(schema: dict[str, Any], root: dict[str, Any] | None = None) -> dict[str, Any]:
    """A schema whose own `$ref` into the definitions of the root is replaced by what it names."""
    root = schema if root is None else root
    reference = schema.get("$ref")
    for _ in range(8):
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        found: object = root
        for piece in reference[2:].split("/"):
            found = found.get(piece) if isinstance(found, dict) else None
        if not isinstance(found, dict):
            return schema
        schema = {**{n: v for n, v in schema.items() if n != "$ref"}, **found}
        reference = found.get("$ref")
    return schema


def _merge(merged: dict[str, Any], branches: list[dict[str, Any]], *, all_hold: bool) -> None:
    """Fold the branches of a root union: all properties; what all branches (allOf: any branch) require."""
    properties = dict(merged.get("properties") or {})
    wanted = [set(_strings(branch.get("required"))) for branch in branches]
    for branch in branches:
        for name, value in (branch.get("properties") or {}).items():
            properties.setdefault(name, value)
        for definitions in ("$defs", "definitions"):
            if isinstance(branch.get(definitions), dict):
                merged[definitions] = {**branch[definitions], **(merged.get(definitions) or {})}
    required = set.union(*wanted) if all_hold else set.intersection(*wanted)
    required |= set(_strings(merged.get("required")))
    merged["properties"] = properties
    if required:
        merged["required"] = [name for name in properties if name in required]
    if not all_hold:
        merged.pop("additionalProperties", None)


def _dicts(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
