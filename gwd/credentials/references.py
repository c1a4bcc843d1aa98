"""`key_ref`: a secret named by where it is kept, `env:NAME` or `file:PATH`, read by the daemon and never stored."""

import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gwd.core.errors import InvalidValue
from gwd.core.text_file import NotUtf8Error, read_text

_ENV: Final = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*")
_FILE: Final = re.compile(r"file:/[^\0]*")
_MAX_BYTES: Final = 64 * 1024


class UnresolvedReferenceError(RuntimeError):
    """The reference leads nowhere now; the text names it, never a value."""


def check(reference: str) -> str:
    """Raises InvalidValue unless it has one of the two forms."""
    if not (_ENV.fullmatch(reference) or _FILE.fullmatch(reference)):
        raise InvalidValue(
            "`key_ref` must be env:NAME or file:/absolute/path, for example env:OPENAI_API_KEY",
            param="key_ref",
        )
    return reference


def resolve(reference: str, environment: Mapping[str, str]) -> str:
    """The secret it names, without surrounding white space. Raises UnresolvedReferenceError."""
    kind, _, place = reference.partition(":")
    found = environment.get(place, "") if kind == "env" else _of_file(reference, Path(place))
    secret = found.strip()
    if not secret:
        raise UnresolvedReferenceError(f"{reference} is empty or not set")
    return secret


def cure(reference: str) -> str:
    """What makes the daemon read it: an environment is that of the start, a file is read again."""
    if reference.startswith("env:"):
        return "set it in the daemon's environment and start the daemon again"
    return "mend the file, then gwctl server reload"


def _of_file(reference: str, path: Path) -> str:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
            # A pipe would be waited for, a device read for ever.
            raise UnresolvedReferenceError(
                f"{reference} is no file of at most {_MAX_BYTES // 1024} KiB"
            )
        return read_text(path)
    except NotUtf8Error as error:
        raise UnresolvedReferenceError(f"{reference} cannot be read: {error}") from None
    except OSError as error:
        raise UnresolvedReferenceError(
            f"{reference} cannot be read by the daemon: {error.strerror}"
        ) from None
