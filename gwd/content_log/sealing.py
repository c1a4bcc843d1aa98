"""How contents are made small and sealed, by which marks users and sessions are found, and where the data keys lie."""

import zlib
from typing import Final, Literal

from gwd.credentials import data_keys
from gwd.credentials.sealed import SealedPlace
from gwd.credentials.vault import Binding, Vault

PURPOSE: Final = "content_log"

_QUICKEST: Final = 1


def digest(vault: Vault, kind: Literal["user", "session"], tag: str) -> bytes:
    """By what the entries of a user or of a session are found."""
    return vault.digest(f"content log {kind}", tag)


def packed(content: bytes) -> bytes:
    """The content made small, to be sealed."""
    return zlib.compress(content, _QUICKEST)


def opened(
    content: bytes,
    vault: Vault,
    sealed_key: str,
    *,
    data_key_id: str,
    organization_id: str,
    generation_id: str,
) -> bytes:
    """A content as it was before it was packed and sealed. Raises CannotOpenError."""
    bound = data_keys.binding(PURPOSE, organization_id, data_key_id)
    return zlib.decompress(data_keys.opened(content, vault, sealed_key, bound, generation_id))


def _bindings(data_key_id: str, organization_id: str) -> tuple[Binding, ...]:
    return (data_keys.binding(PURPOSE, organization_id, data_key_id),)


DATA_KEYS: Final = SealedPlace(
    name="data key of stored requests",
    table="content_log_key",
    column="sealed",
    row="id",
    facts=("organization_id",),
    bindings=_bindings,
    remedy="what it sealed cannot be read any more: gwctl privacy log erase",
)
