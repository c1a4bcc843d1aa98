"""The body of a PATCH: every field may be left out, and what is left out stays as it is."""

from typing import Any

import msgspec
from msgspec import UNSET


def named(changes: msgspec.Struct) -> dict[str, Any]:
    """The fields that a PATCH names, in their order."""
    return {
        name: value
        for name in changes.__struct_fields__
        if (value := getattr(changes, name)) is not UNSET
    }
