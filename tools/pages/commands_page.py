"""docs/gwctl.md: every command of gwctl with its arguments, options and examples."""

from collections.abc import Iterator

from gwctl.commands.help import FORMATTING
from gwctl.errors import EXIT_CODES
from gwctl.profile import ENVIRONMENT
from gwctl.session import COMMON_HELP
from tools.pages.commands import Command, Noun, gwctl
from tools.pages.markdown import page as whole
from tools.pages.markdown import table

_INTRODUCTION = """\
`gwctl` speaks HTTP only, to the address in `GWCTL_URL` or a profile, with the management key in `GWCTL_KEY` or the
profile. `gwctl login` stores both. A noun may be written in the plural, and `-h` works everywhere. The same pages are
there as `man gwctl` and `man gwctl-NOUN` where the package was installed."""


def page() -> str:
    """The page."""
    nouns = [noun for section in gwctl() for noun in section.nouns]
    parts = [
        _INTRODUCTION,
        _contents(),
        f"## Everywhere\n\n```\n{_own(COMMON_HELP)}\n```",
        *(part for noun in nouns for part in _noun(noun)),
        f"## Output and input\n\n```\n{FORMATTING}\n```",
        "## Exit codes\n\n"
        + table(
            ("code", "name", "meaning"), [(str(c), name, text) for c, name, text in EXIT_CODES]
        ),
        "## Environment\n\n"
        + table(("variable", "meaning"), [(f"`{name}`", text) for name, text in ENVIRONMENT]),
    ]
    return whole("gwctl", *parts)


def _own(text: str) -> str:
    return text.removeprefix("Everywhere:\n").rstrip("\n")


def _contents() -> str:
    rows = [
        (section.title, " · ".join(f"[{noun.name}](#{noun.name})" for noun in section.nouns))
        for section in gwctl()
    ]
    return table(("", "commands"), rows)


def _noun(noun: Noun) -> Iterator[str]:
    yield f"## {noun.name}\n\n{noun.text[:1].upper()}{noun.text[1:]}."
    for command in noun.commands:
        yield from _command(command)


def _command(command: Command) -> Iterator[str]:
    yield f"### `{command.path}`"
    yield f"```\n{command.synopsis}\n```"
    yield "\n\n".join(command.text)
    rows = [
        (f"`{word.written}`", f"{word.text}{_more(word.required, word.default)}")
        for word in (*command.arguments, *command.options)
    ]
    if rows:
        yield table(("", ""), rows)
    if command.examples:
        yield "```sh\n" + "\n".join(command.examples) + "\n```"


def _more(required: bool, default: str) -> str:  # noqa: FBT001
    return (" Needed." if required else "") + (f" Default: {default}." if default else "")
