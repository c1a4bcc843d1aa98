"""Nodes of earlier versions, as `make freeze` kept them."""

import json
import lzma
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

import msgspec

PLACE = Path(__file__).parents[1] / "upgrades"
NAMES = sorted(path.name for path in PLACE.iterdir() if (path / "facts.json").exists())


class Frozen(msgspec.Struct, frozen=True):
    """A node that was unpacked into `folder`. `facts` is what every later version must find in it."""

    folder: Path
    facts: dict[str, Any]

    @classmethod
    def unpack(cls, name: str, folder: Path) -> Self:
        """Lay the node into `folder`, which is made."""
        folder.mkdir()
        kept = PLACE / name
        (folder / "gwd.toml").touch()
        (folder / "gwd.db").write_bytes(lzma.decompress((kept / "gwd.db.xz").read_bytes()))
        shutil.copy(kept / "keyring.json", folder)
        for secret in ("gwd.db", "keyring.json"):
            (folder / secret).chmod(0o600)
        return cls(folder, json.loads((kept / "facts.json").read_bytes(), parse_float=Decimal))

    @property
    def database(self) -> str:
        return str(self.folder / "gwd.db")
