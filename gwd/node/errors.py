"""Errors of a command that its user can correct, each in one line; any other exception is a fault of the program."""

import errno

import apsw

from gwd.backups import BackupError
from gwd.core.errors import GatewayError
from gwd.credentials.keyring import KeyRingError
from gwd.credentials.references import UnresolvedReferenceError
from gwd.jobs.service_manager import HandedSocketError
from gwd.management.setup import WrongKeyRingError
from gwd.node.init import DirectoryTakenError
from gwd.node.price_book import NoPriceBookError
from gwd.settings import SettingsError
from gwd.store.connection import NoDatabaseError, OldSqliteError, ReadOnlyDatabaseError
from gwd.store.lock import AlreadyRunningError
from gwd.store.migrations import DamagedFileError, NewerSchemaError
from gwd.store.revocation_log import RevocationLogError

_EXPLAINED = (
    AlreadyRunningError,
    BackupError,
    DirectoryTakenError,
    HandedSocketError,
    KeyRingError,
    DamagedFileError,
    NewerSchemaError,
    NoDatabaseError,
    NoPriceBookError,
    OldSqliteError,
    ReadOnlyDatabaseError,
    RevocationLogError,
    SettingsError,
    UnresolvedReferenceError,
    WrongKeyRingError,
)


def text_of(error: Exception) -> str | None:
    """One line that says what is wrong and what would help; None for a fault of the program."""
    match error:
        case GatewayError():
            return error.message
        case _ if isinstance(error, _EXPLAINED):
            return str(error)
        case OSError(errno=errno.EADDRINUSE):
            return "the port is in use; choose another with --port"
        case UnicodeEncodeError():
            return f"{error.object!r} is not valid UTF-8; choose another name"
        case OSError():
            place = f"{error.filename}: " if error.filename else ""
            return f"{place}{error.strerror or error}"
        case apsw.NotADBError() | apsw.CorruptError():
            return f"the database is damaged ({error}); restore a backup with `gwd restore`"
        case apsw.CantOpenError() | apsw.IOError() | apsw.FullError() | apsw.ReadOnlyError():
            return f"the database cannot be used: {error}"
        case _:
            return None
