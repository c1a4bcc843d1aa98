"""Field names as Google's servers read them: camelCase or snake_case, and one element where a list may stand.

SDKs mix the two forms within one body. What holds names of the client's own (arguments, results, schemas, labels) is
left as it came.
"""

import re
from typing import Any, Final

_WORD: Final = re.compile(r"(?<=[a-z0-9])_([a-z0-9])")
_FREE: Final = frozenset(
    (
        *("args", "response", "parameters", "parametersJsonSchema", "responseSchema"),
        *("responseJsonSchema", "labels", "provider", "usage"),
    )
)
_LISTS: Final = frozenset(
    (
        *("contents", "parts", "tools", "functionDeclarations", "allowedFunctionNames", "requests"),
        *("safetySettings", "stopSequences", "responseModalities"),
    )
)


def camel(name: str) -> str:
    """`inline_data` as `inlineData`; what is in camelCase stays."""
    return _WORD.sub(lambda found: found[1].upper(), name) if "_" in name else name


def normal(value: dict[str, Any]) -> dict[str, Any]:
    """The object with camelCase names at every level that is the format's; a name given in both forms is the latter."""
    found = {}
    for written, field in value.items():
        name = camel(written)
        if name not in _FREE:
            field = _normal(field)
            if name in _LISTS and field is not None and not isinstance(field, list):
                field = [field]
        found[name] = field
    return found


def _normal(value: Any) -> Any:
    match value:
        case dict():
            return normal(value)
        case list():
            return [_normal(each) for each in value]
        case _:
            return value
