"""How a secret comes in: a hidden prompt, standard input or a file; never an argument."""

import sys
from pathlib import Path

from gwctl.errors import CommandError, usage


def read_secret(what: str, *, stdin: bool = False, file: Path | None = None) -> str:
    """The secret, from exactly one place; exit 2 when there is no place to take it from."""
    if stdin and file is not None:
        raise usage("--secret-stdin and --secret-file exclude each other", do="give one of them")
    if stdin:
        return _checked(_piped(what), what, "standard input")
    if file is not None:
        try:
            return _checked(file.read_text(encoding="utf-8"), what, str(file))
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"cannot read {file}: {error}", code="secret_file") from None
    if not sys.stdin.isatty():
        raise usage(
            f"{what} is needed and there is no terminal to ask on",
            do="give it with --secret-stdin or --secret-file, never as an argument",
        )
    return _checked(_ask_hidden(what), what, "the prompt")


def _piped(what: str) -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        raise usage(
            f"{what} from standard input is not valid UTF-8", do="check what is piped in"
        ) from None


def _ask_hidden(what: str) -> str:
    import getpass

    try:
        return getpass.getpass(f"{what} (not shown): ", stream=sys.stderr)
    except EOFError:
        raise usage(
            f"no {what} was given; nothing was done", do="type it, or use --secret-stdin"
        ) from None


def _checked(text: str, what: str, origin: str) -> str:
    secret = text.strip()
    if not secret:
        raise usage(f"{what} from {origin} is empty", do="check what is written there")
    if any(character.isspace() or not character.isprintable() for character in secret):
        raise usage(f"{what} from {origin} holds spaces or control characters", do="check it")
    return secret
