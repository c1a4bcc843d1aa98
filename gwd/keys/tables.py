"""The table of this room, for management and lists; the schema itself is in the store's migrations."""

from typing import Any, Final

import peewee

from gwd.keys.key import Key
from gwd.store.fields import table_of

KeyTable: Final[Any] = table_of(
    "api_key", Key, digest=peewee.BlobField(), deleted_at=peewee.IntegerField(null=True)
)
