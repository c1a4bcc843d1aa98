"""`key_ref`: a secret named by where it is kept, `env:NAME` or `file:PATH`, read by the daemon and never stored."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gwd.core.errors import InvalidValue
from gwd.core.text_file import NotUtf8Error, read_text

_ENV: Final = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*")
_FILE: Final = re.compile(r"file:/[^\0]*")


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
    if kind == "env":
        secret = environment.get(place, "")
    else:
        try:
            secret = read_text(Path(place))
        except NotUtf8Error as error:
            raise UnresolvedReferenceError(f"{reference} cannot be read: {error}") from None
        except OSError as error:
            raise UnresolvedReferenceError(
                f"{reference} cannot be read: {error.strerror}"
            ) from None
    secret = secret.strip()
    if not secret:
        raise UnresolvedReferenceError(f"{reference} is empty or not set")
    return secret
