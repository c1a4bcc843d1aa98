"""JSON schemas as clients send them, brought to draft 2020-12 once, for every vendor.

Libraries still write drafts 3 to 7 and OpenAPI's dialect; some SDKs write a null for every keyword they know, others an
empty list where an empty object belongs. Vendors refuse such schemas, or read them wrongly without a word. A schema
that holds none of it, which is nearly always, is passed on as it came. Annotations and values (`default`, `const`,
`enum`, `examples`) are the client's and stay as they are.
"""

from collections.abc import Callable
from typing import Any, Final

Schema = dict[str, Any]

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_DEFINITIONS: Final = ("$defs", "definitions")
_MAPS: Final = frozenset(
    (*_DEFINITIONS, "properties", "patternProperties", "dependentSchemas", "dependencies")
)
_LISTS: Final = frozenset(("anyOf", "oneOf", "allOf", "prefixItems", "items"))
_MAYBE_BOOLEAN: Final = frozenset(
    ("additionalProperties", "unevaluatedProperties", "unevaluatedItems", "additionalItems")
)
_SCHEMAS: Final = _MAYBE_BOOLEAN | frozenset(
    ("items", "contains", "propertyNames", "not", "if", "then", "else", "contentSchema")
)
_MAY_BE_NULL: Final = frozenset(("default", "const", "example"))
_NEVER_BOOLEAN: Final = frozenset(("exclusiveMinimum", "exclusiveMaximum", "required"))
_NEVER_EMPTY: Final = _MAPS | _SCHEMAS | {"enum"}
_TYPES: Final = frozenset(("string", "object", "array", "integer", "number", "boolean", "null"))
_RENAMED: Final = {"definitions": "$defs", "divisibleBy": "multipleOf"}

# Keywords that the newer draft has no more, or under another name.
_GONE: Final = frozenset(
    (
        *("definitions", "dependencies", "additionalItems", "nullable", "id", "divisibleBy"),
        *("$recursiveRef", "$recursiveAnchor"),
    )
)


def modern(schema: Schema | None) -> Schema | None:
    """The schema in draft 2020-12; itself where there is nothing to do."""
    if schema is None or _is_modern(schema):
        return schema
    return _Rewriting(schema).result()


def _is_modern(schema: Schema) -> bool:
    """Whether no keyword, here or deeper, is one that the rewriting would touch. Agents send hundreds of schemas with
    each request: this looks at each keyword once."""
    for name, value in schema.items():
        if name in _GONE or (name == "$schema" and value != DRAFT):
            return False
        kind = type(value)
        if kind is str:
            if name == "type" and value not in _TYPES:
                return False
            if value[:1] == "#" and (name == "$id" or (name == "$ref" and "/definitions" in value)):
                return False
        elif kind is dict and name != "type":
            if name in _MAPS:
                for each in value.values():
                    if type(each) is not dict or not _is_modern(each):
                        return False
            elif name in _SCHEMAS and not _is_modern(value):
                return False
        elif not _is_modern_value(name, value):
            return False
    return True


def _is_modern_value(name: str, value: Any) -> bool:
    """The same of a value that is neither a text nor an object, as far as it may be one."""
    if name == "type" and not isinstance(value, list):
        return False
    match value:
        case None:
            return name in _MAY_BE_NULL
        case bool():
            if name in _SCHEMAS:
                return name in _MAYBE_BOOLEAN
            return name not in _NEVER_BOOLEAN
        case list():
            if name == "type":
                return len(value) > 1 and all(
                    isinstance(each, str) and each in _TYPES for each in value
                )
            if name == "items" or (not value and name in _NEVER_EMPTY):
                return False
            return name not in _LISTS or all(
                type(each) is dict and _is_modern(each) for each in value
            )
        case _:
            return True


class _Rewriting:
    """One schema on its way to the newer draft; references are read against the schema as it came."""

    def __init__(self, schema: Schema) -> None:
        self._root = schema

    def result(self) -> Schema:
        return self._schema(self._root)

    def _schema(self, old: Schema) -> Schema:
        new: Schema = {}
        for name, value in old.items():
            if value is None and name not in _MAY_BE_NULL:
                continue
            self._keyword(new, name, value, old)
        self._require_marked(new, old)
        if old.get("nullable") is True:
            return _nullable(new)
        return new

    def _keyword(self, new: Schema, name: str, value: Any, old: Schema) -> None:
        special = _SPECIAL.get(name)
        if special is None or not special(self, new, value, old):
            new[_RENAMED.get(name, name)] = self._inside(name, value)

    # Each of these writes a keyword that changed between the drafts, and tells whether this was a case of it.

    def drop(self, new: Schema, value: Any, old: Schema) -> bool:
        return True

    def draft(self, new: Schema, value: Any, old: Schema) -> bool:
        """The draft that a schema names is no longer the one it is in, unless it names the newer one."""
        return bool(value != DRAFT)

    def minimum(self, new: Schema, value: Any, old: Schema) -> bool:
        return old.get("exclusiveMinimum") is True

    def maximum(self, new: Schema, value: Any, old: Schema) -> bool:
        return old.get("exclusiveMaximum") is True

    def exclusive_minimum(self, new: Schema, value: Any, old: Schema) -> bool:
        if value is True and _is_number(old.get("minimum")):
            new["exclusiveMinimum"] = old["minimum"]
        return isinstance(value, bool)

    def exclusive_maximum(self, new: Schema, value: Any, old: Schema) -> bool:
        if value is True and _is_number(old.get("maximum")):
            new["exclusiveMaximum"] = old["maximum"]
        return isinstance(value, bool)

    def identity(self, new: Schema, value: Any, old: Schema) -> bool:
        if not isinstance(value, str):
            return False
        name = value.removeprefix("#")
        if name:
            new["$id" if name == value else "$anchor"] = name
        return True

    def ref(self, new: Schema, value: Any, old: Schema) -> bool:
        if isinstance(value, str):
            new["$ref"] = self._reference(value)
        return isinstance(value, str)

    def type(self, new: Schema, value: Any, old: Schema) -> bool:
        names = _type_names(value)
        if names:
            new["type"] = names[0] if len(names) == 1 else names
        return True

    def required(self, new: Schema, value: Any, old: Schema) -> bool:
        """Draft 3 says at the property what the schema around it says now: see `_require_marked`."""
        return isinstance(value, bool)

    def unless_empty(self, new: Schema, value: Any, old: Schema) -> bool:
        return bool(value == [])

    def items(self, new: Schema, value: Any, old: Schema) -> bool:
        if isinstance(value, list) and value:
            new["prefixItems"] = [self._any(each) for each in value if each is not None]
        return isinstance(value, list)

    def additional_items(self, new: Schema, value: Any, old: Schema) -> bool:
        if isinstance(old.get("items"), list):
            new["items"] = self._any(value)
        return True

    def dependencies(self, new: Schema, value: Any, old: Schema) -> bool:
        if not isinstance(value, dict):
            return bool(value == [])
        for key, each in value.items():
            if isinstance(each, str | list):
                names = [each] if isinstance(each, str) else each
                new.setdefault("dependentRequired", {})[key] = names
            elif each is not None:
                new.setdefault("dependentSchemas", {})[key] = self._any(each)
        return True

    def definitions(self, new: Schema, value: Any, old: Schema) -> bool:
        if not isinstance(value, dict):
            return False
        table = "$defs" if old.get("$defs") is value else "definitions"
        named = {_definition(table, key, old): each for key, each in value.items()}
        new.setdefault("$defs", {}).update(
            {key: self._any({} if each is None else each) for key, each in named.items()}
        )
        return True

    def _inside(self, name: str, value: Any) -> Any:
        """The value of a keyword that keeps its meaning. A property without a schema may hold anything."""
        if name in _MAPS:
            if isinstance(value, dict):
                return {key: {} if each is None else self._any(each) for key, each in value.items()}
            return {} if value == [] else value  # a language whose empty object is an empty list
        if name in _LISTS and isinstance(value, list):
            return [self._any(each) for each in value if each is not None]
        if name in _MAYBE_BOOLEAN and isinstance(value, bool):
            return value
        return self._any(value) if name in _SCHEMAS else value

    def _any(self, value: Any) -> Any:
        """A schema anywhere inside; a boolean one as the object that says the same."""
        match value:
            case dict():
                return self._schema(value)
            case True | []:
                return {}
            case False:
                return {"not": {}}
            case _:
                return value

    def _require_marked(self, new: Schema, old: Schema) -> None:
        """Draft 3 says at each property whether it is required."""
        properties = old.get("properties")
        if not isinstance(properties, dict):
            return
        marked = [
            name
            for name, each in properties.items()
            if isinstance(each, dict) and each.get("required") is True
        ]
        if marked:
            listed = new.get("required")
            listed = listed if isinstance(listed, list) else []
            new["required"] = list(dict.fromkeys([*listed, *marked]))

    def _reference(self, reference: str) -> str:
        """A pointer into this schema by the names that the newer draft has for what it passes."""
        if not reference.startswith("#/"):
            return reference
        place: Any = self._root
        pieces: list[str] = []
        is_keyword = True
        for piece in reference[2:].split("/"):
            parent, key = place, piece.replace("~1", "/").replace("~0", "~")
            place = _step(parent, key)
            if not is_keyword:
                pieces.append(piece)
                is_keyword = True
                continue
            if key in _DEFINITIONS:
                pieces.append("$defs")
            elif key == "items" and isinstance(place, list):
                pieces.append("prefixItems")
            elif key == "additionalItems":
                pieces.append("items")
            elif key == "dependencies":
                pieces.append("dependentSchemas")
            else:
                pieces.append(piece)
            is_keyword = not (key in _MAPS or isinstance(place, list))
        return "#/" + "/".join(self._renamed(reference, pieces))

    def _renamed(self, reference: str, pieces: list[str]) -> list[str]:
        if reference.startswith("#/definitions/") and len(pieces) > 1:
            pieces[1] = _definition("definitions", pieces[1], self._root)
        return pieces


def _definition(table: str, name: str, schema: Schema) -> str:
    """A definition's name in the one table there is now; two tables may have held different ones of one name."""
    other = schema.get("$defs")
    if table == "$defs" or not isinstance(other, dict) or name not in other:
        return name
    return name if other[name] == schema["definitions"].get(name) else f"{name}_2"


def _step(place: Any, key: str) -> Any:
    if isinstance(place, dict):
        return place.get(key)
    if isinstance(place, list) and key.isdigit() and int(key) < len(place):
        return place[int(key)]
    return None


def _type_names(value: Any) -> list[str]:
    """The types by their names in JSON schema; where one of them is unknown the value is left free."""
    listed = value if isinstance(value, list) else [value]
    names = [_type_name(each) for each in listed]
    known = [name for name in names if name is not None]
    return list(dict.fromkeys(known)) if len(known) == len(names) else []


_OTHER_NAMES: Final = {
    **dict.fromkeys(("str", "text"), "string"),
    **dict.fromkeys(("int", "long"), "integer"),
    **dict.fromkeys(("float", "double", "decimal"), "number"),
    "bool": "boolean",
    **dict.fromkeys(("dict", "map"), "object"),
    **dict.fromkeys(("list", "tuple"), "array"),
    "none": "null",
}


def _type_name(value: Any) -> str | None:
    if value is None:
        return "null"
    if not isinstance(value, str):
        return None
    name = value.strip().lower()
    return name if name in _TYPES else _OTHER_NAMES.get(name)


def _nullable(schema: Schema) -> Schema:
    """OpenAPI's `nullable`: null is one more type, or one more way to be right."""
    kind = schema.get("type")
    if kind is None:
        if not schema.keys() & {"$ref", "anyOf", "oneOf", "allOf", "enum", "const"}:
            return schema  # free already
        if isinstance(branches := schema.get("anyOf"), list) and len(schema) == 1:
            return {"anyOf": [*branches, {"type": "null"}]}
        notes: Schema = {name: schema[name] for name in ("title", "description") if name in schema}
        rest = {name: value for name, value in schema.items() if name not in notes}
        return {**notes, "anyOf": [rest, {"type": "null"}]}
    kinds = kind if isinstance(kind, list) else [kind]
    schema["type"] = list(dict.fromkeys([*kinds, "null"]))
    values = schema.get("enum")
    if isinstance(values, list) and None not in values:
        schema["enum"] = [*values, None]
    return schema


_Special = Callable[[_Rewriting, Schema, Any, Schema], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_SPECIAL: Final[dict[str, _Special]] = {
    "nullable": _Rewriting.drop,
    "$recursiveAnchor": _Rewriting.drop,
    "$schema": _Rewriting.draft,
    "minimum": _Rewriting.minimum,
    "maximum": _Rewriting.maximum,
    "exclusiveMinimum": _Rewriting.exclusive_minimum,
    "exclusiveMaximum": _Rewriting.exclusive_maximum,
    "id": _Rewriting.identity,
    "$id": _Rewriting.identity,
    "$ref": _Rewriting.ref,
    "$recursiveRef": _Rewriting.ref,
    "type": _Rewriting.type,
    "required": _Rewriting.required,
    "enum": _Rewriting.unless_empty,
    "items": _Rewriting.items,
    "additionalItems": _Rewriting.additional_items,
    "dependencies": _Rewriting.dependencies,
    "definitions": _Rewriting.definitions,
    "$defs": _Rewriting.definitions,
}
