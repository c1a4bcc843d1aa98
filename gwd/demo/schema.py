"""A value that fits a JSON schema, the same for the same seed."""

import re
from typing import Any

from gwd.demo.sentences import Picker
from gwd.demo.wire import Json, as_list, as_object

_MAX_DEPTH = 8
_MOST_ITEMS = 1_000
_MOST_LETTERS = 10_000
_NAME = re.compile(r"(?<=\s)[A-Z][A-Za-z-]+")
_QUOTED = re.compile(r"[\"“']([^\"”']{1,80})[\"”']")
_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbour")
_FORMATS = {
    "date": "2026-03-14",
    "date-time": "2026-03-14T15:09:26Z",
    "time": "15:09:26Z",
    "duration": "PT90S",
    "email": "ada@example.com",
    "hostname": "host.example.com",
    "ipv4": "192.0.2.7",
    "ipv6": "2001:db8::7",
    "uri": "https://example.com/a",
    "url": "https://example.com/a",
    "uuid": "0b8f5a52-6f0e-4d39-9c6b-3f1f6f6a1b2c",
}


def example(schema: Json, *, seed: bytes, hint: str = "", turn: int = 0) -> Any:
    """One fitting value. Strings are taken from the `turn`-th name the hint mentions, if any."""
    return _Maker(schema, Picker(seed), _names_in(hint), turn).make(schema, 0)


def _names_in(hint: str) -> list[str]:
    return _QUOTED.findall(hint) or _NAME.findall(hint)


class _Maker:
    def __init__(self, root: Json, picker: Picker, names: list[str], turn: int) -> None:
        self._root = root
        self._picker = picker
        self._names = names
        self._turn = turn

    def make(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, dict):  # `true`: anything fits
            return "anything"
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        if options := as_list(schema.get("enum")):
            return options[self._picker.number(len(options))]
        for word in ("anyOf", "oneOf"):
            if choices := as_list(schema.get(word)):
                rest = {name: value for name, value in schema.items() if name != word}
                return self.make({**rest, **self._simplest(choices, depth)}, depth)
        return self._make_type(_type_of(schema), schema, depth)

    def _make_type(self, kind: str, schema: Json, depth: int) -> Any:
        match kind:
            case "object":
                return self._make_object(schema, depth)
            case "array":
                return self._make_array(schema, depth)
            case "integer" | "number":
                return self._make_number(schema, whole=kind == "integer")
            case "boolean":
                return self._picker.number(2) == 1
            case "null":
                return None
            case _:
                return self._make_string(schema)

    def _make_object(self, schema: Json, depth: int) -> Json:
        properties = as_object(schema.get("properties"))
        required = as_list(schema.get("required"))
        # A schema that contains itself would never end, so deep down only what must be there is made.
        names = [name for name in properties if depth < _MAX_DEPTH or name in required]
        made = {name: self.make(properties[name], depth + 1) for name in names}
        for name in required:
            made.setdefault(name, "anything")
        return made

    def _make_array(self, schema: Json, depth: int) -> list[Any]:
        prefix = as_list(schema.get("prefixItems"))
        made = [self.make(item, depth + 1) for item in prefix]
        least = min(schema.get("minItems", 0 if depth >= _MAX_DEPTH else 1), _MOST_ITEMS)
        wanted = min(max(least, len(made)), schema.get("maxItems", least + len(made)))
        while len(made) < wanted:
            made.append(self.make(schema.get("items", True), depth + 1))
        return made[:wanted]

    def _make_number(self, schema: Json, *, whole: bool) -> int | float:
        step = schema.get("multipleOf", 1)
        low = schema.get("minimum")
        if low is None and "exclusiveMinimum" in schema:
            low = schema["exclusiveMinimum"] + step
        high = schema.get("maximum")
        if high is None and "exclusiveMaximum" in schema:
            high = schema["exclusiveMaximum"] - step
        start = low if low is not None else (high - step if high is not None else 1)
        value = start + step * self._picker.number(9)
        if high is not None and value > high:
            value = start
        if step != 1:
            value = -(-value // step) * step
        return int(value) if whole else value

    def _make_string(self, schema: Json) -> str:
        if (made := _FORMATS.get(schema.get("format", ""))) is not None:
            return made
        text = self._picker.choose(_WORDS)
        if self._names:
            text = self._names[self._turn % len(self._names)]
        least, most = schema.get("minLength", 0), schema.get("maxLength", _MOST_LETTERS)
        least = min(least, _MOST_LETTERS)
        while len(text) < least:
            text += " " + self._picker.choose(_WORDS)
        return str(text[:most])

    def _resolved(self, schema: Json) -> Json:
        """The schema with its references and `allOf` parts written out."""
        hops = 0
        while isinstance(reference := schema.get("$ref"), str) and hops < _MAX_DEPTH:
            rest = {name: value for name, value in schema.items() if name != "$ref"}
            schema = {**self._look_up(reference), **rest}
            hops += 1
        for part in as_list(schema.get("allOf")):
            merged = self._resolved(as_object(part))
            schema = {
                **schema,
                **merged,
                "properties": {
                    **as_object(schema.get("properties")),
                    **as_object(merged.get("properties")),
                },
                "required": [*as_list(schema.get("required")), *as_list(merged.get("required"))],
            }
        return schema

    def _look_up(self, reference: str) -> Json:
        found: Any = self._root
        for name in reference.removeprefix("#").strip("/").split("/"):
            if name:
                found = as_object(found).get(name.replace("~1", "/").replace("~0", "~"))
        return as_object(found)

    def _simplest(self, choices: list[Any], depth: int) -> Json:
        """The first choice; deep down one that ends."""
        resolved = [self._resolved(as_object(choice)) for choice in choices]
        if depth < _MAX_DEPTH:
            return resolved[0]
        ending = [one for one in resolved if _type_of(one) not in ("object", "array")]
        return (ending or resolved)[0]


def _type_of(schema: Json) -> str:
    named = schema.get("type")
    if isinstance(named, list):
        return next((str(one) for one in named if one != "null"), "null")
    if isinstance(named, str):
        return named
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema or "prefixItems" in schema else "string"
