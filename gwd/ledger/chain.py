"""The hash chain of one organization's entries: h(n) = SHA-256(h(n−1) ‖ canonical row n).

The canonical row is the JSON array of an entry's columns in the order of `COLUMNS`, and of its seal where it has one.
Changing that order or the encoding would break every chain written so far.
"""

from hashlib import sha256
from typing import Final

import msgspec

Row = tuple[str | int | None, ...]

COLUMNS: Final = (
    "organization_id",
    "seq",
    "id",
    "type",
    "from_account",
    "to_account",
    "amount_nano",
    "bucket",
    "lot_id",
    "generation_id",
    "key_id",
    "workspace_id",
    "reference",
    "note",
    "actor",
    "balance_after_nano",
    "created_at",
)
START: Final = b""

_encode = msgspec.json.Encoder().encode


def link(previous: bytes, row: Row, seal: str | None = None) -> bytes:
    """The hash of a row that follows `previous`. `seal` is what the entry vouches for beside itself."""
    return sha256(previous + _encode(row if seal is None else (*row, seal))).digest()
