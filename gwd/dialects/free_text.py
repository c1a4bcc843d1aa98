"""The free text of a custom tool's call, which travels inside as `{"input": "…"}`."""

from typing import Final

from gwd.core.lenient_json import UNREADABLE, read

_DEEPEST: Final = 8


def free_text(arguments: str) -> str:
    """The text in the arguments of a call: the `input`, or the only member under whatever name the model gave it.
    Arguments in another shape are the text themselves, as the model wrote it."""
    try:
        value = read(arguments)
    except UNREADABLE:
        return arguments
    if value == {}:
        return ""
    for _ in range(_DEEPEST):
        if isinstance(value, str):
            return value
        if not isinstance(value, dict):
            break
        only = next(iter(value.values())) if len(value) == 1 else None
        value = value.get("input", only)
    return arguments
