"""The three streams of the process, made fit for use before anything is done, and emptied at the end."""

import errno
import io
import os
import sys
from collections.abc import Sequence

from gwctl.errors import FAILED, CommandError, usage

_OF_OUTPUT = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


def prepare(words: Sequence[str]) -> None:
    """Refuse what cannot work while nothing is done yet: closed output, words that are no text."""
    # A closed stream is None, and its number would go to the next file or socket that is opened.
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stdout is None:
        raise CommandError(
            "standard output is closed; nothing was done",
            exit_code=FAILED,
            code="closed_output",
            why="what is shown once, such as a new key, would be lost",
            do="add >/dev/null if nothing shall be seen",
        )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that knows only ASCII gets question marks rather than a traceback.
            stream.reconfigure(errors="replace")
    for word in words:
        if not is_text(word):
            raise usage(
                f"an argument is not valid UTF-8: {word!a}", do="type it in the terminal's encoding"
            )


def is_text(word: str) -> bool:
    """Whether it can be written down: bytes that are no UTF-8 arrive as halves of characters."""
    return not any("\ud800" <= character <= "\udfff" for character in word)


def give_up_output() -> None:
    """Nobody reads standard output any more; the interpreter's own last flush must not complain."""
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):  # not a file, as in a test
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def failed(error: OSError) -> CommandError:
    """The machine said no: a full disk behind standard output, a port that is taken."""
    said = error.strerror or str(error)
    what, do = f"{error.filename or 'this machine'}: {said}", "check that path, port or limit"
    if error.errno == errno.EADDRINUSE:
        what, do = "the port is in use", "choose another with --port; 0 takes a free one"
    elif error.filename is None and error.errno in _OF_OUTPUT:
        what = f"the output could not be written: {said}"
        do = "make room where it goes; what was changed stays changed"
    return CommandError(what, code="machine", why="the operating system refused it", do=do)


def undecodable(error: UnicodeError) -> CommandError:
    return usage(
        "what was read is not valid UTF-8",
        do=f"check standard input or the file that was named ({error.reason})"
        if isinstance(error, UnicodeDecodeError | UnicodeEncodeError)
        else "check what was typed",
    )
