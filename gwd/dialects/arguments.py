"""The arguments of a call as an object, for formats whose calls hold one."""

from typing import Any

from gwd.core.lenient_json import UNREADABLE, read


def arguments_object(arguments: str) -> dict[str, Any]:
    """The object; some models write its text as a string. Arguments that are no object, or cut off by the token limit,
    are an empty one."""
    try:
        value = read(arguments or "{}")
        if isinstance(value, str):
            value = read(value)
    except UNREADABLE:
        return {}
    return value if isinstance(value, dict) else {}
