"""Own vendor keys as commands and files share them."""

from typing import Final

from gwctl.records import Resource
from gwctl.tables import Column, Record, of

_HEAD: Final = 3
_TAIL: Final = 4
_SHORTEST: Final = 12


def _state(record: Record) -> str:
    if record.get("disabled"):
        return "disabled"
    return "unusable" if record.get("problem") else "enabled"


BYOK = Resource(
    noun="byok",
    path="/byok",
    id_prefix=("pk_",),
    names=("name", "provider"),
    columns=of(
        "VendorKeyRecord",
        Column("PROVIDER", "provider", name=True),
        Column("NAME", "name", cut=False),
        Column("KEY", lambda row: row.get("key_ref") or row.get("label")),
        Column("STATE", _state, "state"),
        Column("FEE", "fee_percent"),
        Column("LAST USED", "last_used_at", leaves=2),
        Column("LAST ERROR", "last_error.reason", leaves=1),
        Column("ID", "id", leaves=3),
    ),
)


def label_of(key: str) -> str:
    """How the gateway shows a key: by it one sees whether it holds another one."""
    return f"{key[:_HEAD]}…{key[-_TAIL:]}" if len(key) >= _SHORTEST else "…"
