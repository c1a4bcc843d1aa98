"""backups: copies of a node's database: how one is made and proved, and which of them are kept.

Owns: the copy of one moment and its proof, the note beside it, the names in a directory of copies, which are thinned.
Does not own: when copies are made (jobs), how one is put back (node).
Invariants: a copy has its name only when it was proved; only a proved copy counts; what this node did not make and note
is never removed.
Queries: plain SQL, for the file as a whole.
Speaks to: proof, management for the key ring's check, credentials, orgs, store.
"""

from gwd.backups.copying import Backup, BackupError
from gwd.backups.directory import Copy
from gwd.backups.rhythm import Keep
from gwd.backups.standing import Standing

__all__ = ["Backup", "BackupError", "Copy", "Keep", "Standing"]
