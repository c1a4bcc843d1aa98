"""docs/man/*.1: a man page for gwd, for gwctl and for each of its nouns."""

from collections.abc import Iterable, Iterator

from gwctl.errors import EXIT_CODES
from gwctl.profile import ENVIRONMENT
from gwctl.session import COMMON_HELP
from gwd import __version__
from tools.pages.commands import Command, Word, gwctl, gwd

_ABOUT_GWD = (
    "gwd is a self-hosted model gateway: programs speak the API they already speak, gwd finds an endpoint that serves "
    "the model, holds an upper bound of the cost before the request goes out, and charges the exact cost before the "
    "last byte comes back. One process, one SQLite file."
)
_ABOUT_GWCTL = (
    "gwctl manages a gwd gateway over HTTP: keys, budgets, rotation, credit, the catalog, alerts. The address and the "
    "management key come from flags, the environment or a profile, in this order."
)
_EXITS_OF_GWD = (
    (0, "done"),
    (1, "failed, or check found something wrong"),
    (2, "wrong usage; nothing was done"),
)


def pages() -> dict[str, str]:
    """File name and text of every page."""
    nouns = [noun for section in gwctl() for noun in section.nouns]
    made = {"gwd.1": _gwd(), "gwctl.1": _gwctl()}
    for noun in nouns:
        about = f"{noun.text[:1].upper()}{noun.text[1:]}."
        parts = [
            _head(f"gwctl-{noun.name}", noun.text),
            *_synopsis(noun.commands),
            ".SH DESCRIPTION",
            _text(about),
            *(line for command in noun.commands for line in _command(command)),
            ".SH EVERYWHERE",
            _literal(COMMON_HELP.removeprefix("Everywhere:\n")),
            *_see("gwctl(1)"),
        ]
        made[f"gwctl-{noun.name}.1"] = "\n".join(parts) + "\n"
    return made


def _gwd() -> str:
    commands = gwd()
    parts = [
        _head("gwd", "a self-hosted model gateway with a prepaid, exact, auditable ledger"),
        *_synopsis(commands),
        ".SH DESCRIPTION",
        _text(_ABOUT_GWD),
        *(line for command in commands for line in _command(command)),
        ".SH EXIT STATUS",
        *_pairs((str(code), text) for code, text in _EXITS_OF_GWD),
        ".SH ENVIRONMENT",
        *_pairs(
            [
                ("GWD_CONFIG", "The node's gwd.toml or its directory, as --config."),
                ("GWD_SECTION_NAME", "One setting of gwd.toml; it beats the file."),
                ("GWD_SECTION_NAME_FILE", "A file that holds the value of that setting."),
            ]
        ),
        ".SH FILES",
        *_pairs(
            [
                ("gwd.toml", "The settings."),
                (
                    "keyring.json",
                    "The key ring, mode 0600; without it stored secrets and keys are lost.",
                ),
                ("gwd.db", "The database."),
            ]
        ),
        *_see("gwctl(1)"),
    ]
    return "\n".join(parts) + "\n"


def _gwctl() -> str:
    parts = [
        _head("gwctl", "the command line of a gwd gateway"),
        ".SH SYNOPSIS",
        ".B gwctl",
        _text("NOUN VERB [OPTIONS] [ARGS]..."),
        ".SH DESCRIPTION",
        _text(_ABOUT_GWCTL),
        ".SH COMMANDS",
    ]
    names = []
    for section in gwctl():
        parts += [f".SS {_text(section.title)}"]
        parts += _pairs((f"gwctl-{noun.name}(1)", noun.text) for noun in section.nouns)
        names += [f"gwctl-{noun.name}(1)" for noun in section.nouns]
    parts += [
        ".SH OPTIONS",
        _literal(COMMON_HELP.removeprefix("Everywhere:\n")),
        ".SH EXIT STATUS",
        *_pairs((f"{code} ({name})", text) for code, name, text in EXIT_CODES),
        ".SH ENVIRONMENT",
        *_pairs(ENVIRONMENT),
        ".SH FILES",
        *_pairs([("$XDG_CONFIG_HOME/gwctl/config.toml", "The profiles, mode 0600.")]),
        *_see("gwd(1)", *names),
    ]
    return "\n".join(parts) + "\n"


def _head(name: str, text: str) -> str:
    return (
        f'.TH {name.upper().replace("-", chr(92) + "-")} 1 "" "gwd {__version__}" "gwd"\n'
        f".SH NAME\n{_text(name)} \\- {_text(text)}"
    )


def _synopsis(commands: Iterable[Command]) -> Iterator[str]:
    yield ".SH SYNOPSIS"
    for count, command in enumerate(commands):
        if count:
            yield ".br"
        yield f".B {_text(command.path)}"
        rest = command.synopsis.removeprefix(command.path).strip()
        if rest:
            yield _text(rest)


def _command(command: Command) -> Iterator[str]:
    yield f".SS {_text(command.path)}"
    for number, paragraph in enumerate(command.text):
        if number:
            yield ".PP"
        yield _text(paragraph)
    yield from _pairs((_shown(word), _meaning(word)) for word in command.arguments)
    yield from _pairs((_shown(word), _meaning(word)) for word in command.options)
    if command.examples:
        yield ".PP"
        yield "Examples:"
        yield _literal("\n".join(command.examples))


def _shown(word: Word) -> str:
    return word.written


def _meaning(word: Word) -> str:
    default = f" Default: {word.default}." if word.default else ""
    return f"{word.text}{default}"


def _pairs(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, text in rows:
        yield ".TP"
        yield f".B {_text(name)}"
        yield _text(text)


def _literal(text: str) -> str:
    lines = [_text(line) for line in text.strip("\n").splitlines()]
    return "\n".join([".PP", ".nf", ".RS 4", *lines, ".RE", ".fi"])


def _see(*names: str) -> Iterator[str]:
    yield ".SH SEE ALSO"
    yield _text(", ".join(names))


def _text(text: str) -> str:
    """Text that roff prints as it stands: its backslashes, hyphens, quotes and leading dots are escaped."""
    safe = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    for character, name in (
        ("…", "..."),
        ("·", "\\(bu"),
        ("→", "\\(->"),
        ("^", "\\(ha"),
        ("~", "\\(ti"),
    ):
        safe = safe.replace(character, name)
    return f"\\&{safe}" if safe.startswith((".", "\\(aq")) else safe
