"""JSON schemas as clients send them: a keyword whose value is null says nothing.

Some SDKs write a null for every keyword they know. Vendors refuse such schemas, so the nulls are dropped here, once,
for every vendor. Where a null is a value (`default`, `const`, a member of `enum`) it stays.
"""

from typing import Any, Final

import msgspec

Schema = dict[str, Any]

_VALUES: Final = frozenset(("default", "const", "example"))
_MAPS: Final = frozenset(
    ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
)
_LISTS: Final = frozenset(("anyOf", "oneOf", "allOf", "prefixItems", "items"))
_SCHEMAS: Final = frozenset(
    (
        *("items", "additionalItems", "unevaluatedItems", "contains"),
        *("additionalProperties", "unevaluatedProperties", "propertyNames"),
        *("not", "if", "then", "else", "contentSchema"),
    )
)
_ENCODE: Final = msgspec.json.Encoder().encode


def without_nulls(schema: Schema | None) -> Schema | None:
    """The schema without its null keywords, at every depth; itself where there are none, which is nearly always."""
    if schema is None or b":null" not in _ENCODE(schema):
        return schema
    return _cleaned(schema)


def _cleaned(schema: Schema) -> Schema:
    return {
        name: _inside(name, value)
        for name, value in schema.items()
        if value is not None or name in _VALUES
    }


def _inside(name: str, value: Any) -> Any:
    """The value of one keyword. A property without a schema may hold anything, a branch that is null is none."""
    if name in _MAPS and isinstance(value, dict):
        return {key: {} if each is None else _schema(each) for key, each in value.items()}
    if name in _LISTS and isinstance(value, list):
        return [_schema(each) for each in value if each is not None]
    return _schema(value) if name in _SCHEMAS else value


def _schema(value: Any) -> Any:
    return _cleaned(value) if isinstance(value, dict) else value
