"""The body of a PATCH: every field may be left out, and what is left out stays as it is."""

from typing import Any, Final, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.core.fields import marked

FIXED: Final = Meta(extra={"patch": "never"})
"""What a record is made with and cannot be changed later."""


def patch_of(create: type[msgspec.Struct], name: str, doc: str, **more: Any) -> Any:
    """The body that changes what `create` makes: its fields without those marked `FIXED`, and `more`."""
    hints = get_type_hints(create, include_extras=True)
    fixed = marked(create, FIXED)
    types = {field: hints[field] for field in create.__struct_fields__ if field not in fixed}
    return msgspec.defstruct(
        name,
        [(field, kind | UnsetType, UNSET) for field, kind in {**types, **more}.items()],
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
        module=create.__module__,
        namespace={"__doc__": doc},
    )


def named(changes: msgspec.Struct) -> dict[str, Any]:
    """The fields that a PATCH names, in their order."""
    return {
        name: value
        for name in changes.__struct_fields__
        if (value := getattr(changes, name)) is not UNSET
    }
