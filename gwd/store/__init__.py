"""store: the one SQLite file: its writer, its readers, its migrations, its instance lock.

Owns: connections, transactions, the schema's history, what a lost batch or a full disk means.
Does not own: any table's meaning; rooms write plain functions of a `Connection` and never commit.
Invariants: one process writes, one batch at a time; a function runs entirely or not at all; callers wake after COMMIT;
what the writer remembers is what the file says; a report ends when its time is over.
Speaks to: nobody above core.
"""

from gwd.store.cached import cached, maintains_cache
from gwd.store.connection import Connection
from gwd.store.database import Store

__all__ = ["Connection", "Store", "cached", "maintains_cache"]
