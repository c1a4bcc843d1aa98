"""How a secret comes in: a hidden prompt, standard input or a file; never an argument."""

import os
import sys
from pathlib import Path

from gwctl.errors import usage
from gwctl.files import read_standard_input, read_text
from gwctl.values import flag, opt

SECRET_STDIN = flag("--secret-stdin", "Read the key from stdin.")
SECRET_FILE = opt("--secret-file", "FILE", "Read the key from a file.")
KEY_REF = opt("--key-ref", "REF", "env:NAME or file:PATH; read by the daemon, never stored by it.")


def secret_fields(
    what: str, *, stdin: bool, file: Path | None, key_ref: str | None
) -> dict[str, str]:
    """`key` or `key_ref` of a body, from exactly one source."""
    if key_ref is not None:
        if stdin or file is not None:
            raise usage("--key-ref and a secret exclude each other", do="give one of them")
        if not key_ref.startswith(("env:", "file:")):
            raise usage(f"--key-ref {key_ref!r} is no reference", do="env:NAME or file:PATH")
        return {"key_ref": key_ref}
    return {"key": read_secret(what, stdin=stdin, file=file)}


def read_secret(what: str, *, stdin: bool = False, file: Path | None = None) -> str:
    """The secret, from exactly one place; exit 2 when there is no place to take it from."""
    if stdin and file is not None:
        raise usage("--secret-stdin and --secret-file exclude each other", do="give one of them")
    if stdin:
        return _checked(read_standard_input("secret"), what, "standard input")
    if file is not None:
        return _checked(read_text(file, "secret_file"), what, str(file))
    if not sys.stdin.isatty():
        raise usage(
            f"{what} is needed and there is no terminal to ask on",
            do="give it with --secret-stdin or --secret-file, never as an argument",
        )
    return _checked(_ask_hidden(what), what, "the prompt")


def referenced(reference: str) -> str:
    """The secret that `env:NAME` or `file:PATH` names where gwctl runs; exit 2 when there is none."""
    kind, _, place = reference.partition(":")
    if kind == "file":
        return _checked(read_text(Path(place), "secret"), "the secret", place)
    return _checked(os.environ.get(place, ""), "the secret", f"the environment's {place}")


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
