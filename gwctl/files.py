"""Text files that people wrote, on whatever machine: a byte order mark is left out, UTF-16 is called by its name."""

import codecs
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from gwctl.errors import CommandError

_OTHERS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),  # it begins with the mark of UTF-16
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_BOM = "\ufeff"


def read_text(path: Path, code: str) -> str:
    """The file's text; `code` is that of the error when there is none."""
    try:
        return text_of(path.read_bytes(), str(path), code)
    except OSError as error:
        raise CommandError(
            f"cannot read {path}: {error.strerror}", code=code, do="check the path"
        ) from None


def read_standard_input(code: str) -> str:
    """All of standard input as text."""
    try:
        return sys.stdin.read().removeprefix(_BOM)
    except UnicodeDecodeError as error:
        return text_of(error.object, "standard input", code)


def text_of(content: bytes, name: str, code: str) -> str:
    """The bytes as text, which has to be UTF-8."""
    encoding = next((called for mark, called in _OTHERS if content.startswith(mark)), "")
    if not encoding and b"\0" in content[:2] and len(content) > 1:
        encoding = "UTF-16"  # without a mark: a character of ASCII has a zero byte beside it
    if encoding:
        raise CommandError(
            f"{name} is written in {encoding}",
            code=code,
            do="save it as UTF-8; in PowerShell: Set-Content -Encoding utf8",
        )
    try:
        return content.decode("utf-8").removeprefix(_BOM)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise CommandError(
            f"{name} is not valid UTF-8 (line {line})", code=code, do="save it as UTF-8"
        ) from None


@contextmanager
def replacing(path: Path, code: str) -> Iterator[TextIO]:
    """A file to write to that takes this name when it is complete; a failure leaves the old one. A new one is 0600."""
    target = path.resolve()  # a link to a file kept elsewhere stays a link
    if target.exists() and not target.is_file():
        raise CommandError(f"{path} is no file", code=code, do="name a file")
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                Path(name).chmod(target.stat().st_mode & 0o777)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CommandError(
            f"cannot write {path}: {error.strerror}", code=code, do="check the path"
        ) from None
