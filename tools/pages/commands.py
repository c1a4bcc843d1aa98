"""The commands of `gwctl` and `gwd` as values, read from the programs themselves."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from typer.main import get_command, get_group

from gwctl.app import GwctlRoot
from gwctl.app import app as gwctl_app
from gwd.__main__ import app as gwd_app

_EXAMPLE = re.compile(r"^(?:[A-Z_]+=\S+ )*gwd [a-z-]+")


class Word(msgspec.Struct, frozen=True):
    """An argument or an option: how it is written, what it takes, what it does."""

    names: tuple[str, ...]
    takes: str
    text: str
    required: bool
    repeatable: bool
    default: str

    @property
    def written(self) -> str:
        """As it stands in a list of options."""
        return f"{', '.join(self.names)} {self.takes}".strip()


class Command(msgspec.Struct, frozen=True):
    """One command with all it takes."""

    path: str
    text: tuple[str, ...]
    arguments: tuple[Word, ...]
    options: tuple[Word, ...]
    examples: tuple[str, ...]

    @property
    def synopsis(self) -> str:
        """The line that shows how it is called."""
        words = [self.path]
        for word in self.arguments:
            shown = word.takes + "…" * word.repeatable
            words.append(shown if word.required else f"[{shown}]")
        return " ".join([*words, *["[OPTIONS]"] * bool(self.options)])


class Noun(msgspec.Struct, frozen=True):
    """A noun of gwctl, or one of its commands without a verb."""

    name: str
    text: str
    commands: tuple[Command, ...]


class Section(msgspec.Struct, frozen=True):
    """A heading of `gwctl --help` with its nouns."""

    title: str
    nouns: tuple[Noun, ...]


def gwctl() -> tuple[Section, ...]:
    """All of gwctl, in the order of its help."""
    root: Any = get_group(gwctl_app)
    return tuple(
        Section(
            title,
            tuple(
                Noun(name, text, tuple(_commands(root.get_command(None, name), f"gwctl {name}")))
                for name, _, text in rows
            ),
        )
        for title, rows in GwctlRoot.sections
    )


def gwd() -> tuple[Command, ...]:
    """All of gwd."""
    return tuple(_commands(get_command(gwd_app), "gwd"))


def _commands(command: Any, path: str) -> Iterator[Command]:
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            yield from _commands(command.get_command(None, name), f"{path} {name}")
        return
    paragraphs = [" ".join(part.split()) for part in inspect.cleandoc(command.help).split("\n\n")]
    epilog = str(command.epilog or "").splitlines()
    words = [_word(param) for param in command.params]
    yield Command(
        path=path,
        text=tuple(part for part in paragraphs if not _EXAMPLE.match(part)),
        arguments=tuple(word for word in words if not word.names),
        options=tuple(word for word in words if word.names and word.names != ("--help",)),
        examples=tuple(
            [line.strip()[2:] for line in epilog if line.strip().startswith("$ ")]
            + [part for part in paragraphs if _EXAMPLE.match(part)]
        ),
    )


def _word(param: Any) -> Word:
    flag = getattr(param, "is_flag", False)
    is_option = param.param_type_name == "option"
    takes = "" if flag else param.metavar or param.type.name.upper()
    default = "" if flag or param.default is None or callable(param.default) else param.default
    return Word(
        names=(*param.opts, *param.secondary_opts) if is_option else (),
        takes=takes,
        text=param.help or "",
        required=param.required,
        repeatable=bool(getattr(param, "multiple", False)) or param.nargs == -1,
        default=str(default),
    )
