"""Typed reading of one value deep inside a body, with errors that name its whole path."""

from typing import TypeVar

from gwd.core.errors import InvalidRequest
from gwd.dialects import json_input

T = TypeVar("T")


def typed_at(path: str, value: object, shape: type[T]) -> T:
    """`value` as `shape`. Raises what `json_input.typed` raises, with `path` in front of the field's own."""
    try:
        return json_input.typed(value, shape)
    except InvalidRequest as error:
        if error.param:
            raise type(error)(
                error.message.replace(f"`{error.param}`", f"`{path}.{error.param}`", 1),
                param=f"{path}.{error.param}",
            ) from None
        raise type(error)(f"`{path}`: {error.message}", param=path) from None
