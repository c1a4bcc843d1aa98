"""A tool's parameters as vendors take them: every one wants an object at the root of the schema.

The schema comes in draft 2020-12, which the dialects see to. A union at the root becomes one object with the properties
of all branches, where the vendor refuses unions there; a value that is no object becomes the one property of an object.
"""

from typing import Any, Final

Schema = dict[str, Any]

FREE_TEXT: Final[Schema] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
"""What a tool of free text is offered with where a vendor knows only functions."""
_ROOT_UNIONS: Final = ("anyOf", "oneOf", "allOf")
_VALUE: Final = "input"


def object_root(schema: Schema | None, *, takes_unions: bool = False) -> Schema:
    """The schema with an object at its root; itself where the vendor takes it as it is."""
    if schema is None:
        return {"type": "object", "properties": {}}
    has_unions = any(name in schema for name in _ROOT_UNIONS)
    if schema.get("type") == "object" and (takes_unions or not has_unions):
        return schema
    root = _inlined(schema)
    if not _may_be_object(root):
        return _as_property(root)
    merged = {name: value for name, value in root.items() if name not in _ROOT_UNIONS}
    merged["type"] = "object"
    for name in _ROOT_UNIONS:
        if takes_unions and name in root:
            merged[name] = root[name]
            continue
        branches = [_inlined(branch, schema) for branch in _dicts(root.get(name))]
        if branches:
            _merge(merged, branches, all_hold=name == "allOf")
    merged.setdefault("properties", {})
    return merged


def without_draft(schema: Schema) -> Schema:
    """The schema without the name of its draft, which many servers refuse."""
    if "$schema" not in schema:
        return schema
    return {name: value for name, value in schema.items() if name != "$schema"}


def _may_be_object(root: Schema) -> bool:
    kind = root.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    return kind is None or "object" in kinds or kinds == ["null"]


def _as_property(root: Schema) -> Schema:
    """A value that is no object, as the one property of an object; definitions stay where references find them."""
    outside: Schema = {name: root[name] for name in ("$defs", "$schema") if name in root}
    inside = {name: value for name, value in root.items() if name not in outside}
    properties = {_VALUE: inside}
    return {**outside, "type": "object", "properties": properties, "required": [_VALUE]}


def _inlined(schema: Schema, root: Schema | None = None) -> Schema:
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


def _merge(merged: Schema, branches: list[Schema], *, all_hold: bool) -> None:
    """Fold the branches of a root union: all properties; what all branches (allOf: any branch) require."""
    properties = dict(merged.get("properties") or {})
    wanted = [set(_strings(branch.get("required"))) for branch in branches]
    for branch in branches:
        for name, value in (branch.get("properties") or {}).items():
            properties.setdefault(name, value)
        if isinstance(branch.get("$defs"), dict):
            merged["$defs"] = {**branch["$defs"], **(merged.get("$defs") or {})}
    required = set.union(*wanted) if all_hold else set.intersection(*wanted)
    required |= set(_strings(merged.get("required")))
    merged["properties"] = properties
    if required:
        merged["required"] = [name for name in properties if name in required]
    if not all_hold:
        merged.pop("additionalProperties", None)


def _dicts(value: object) -> list[Schema]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
