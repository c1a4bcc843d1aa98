"""One run of gwctl: the flags that work everywhere, the settings, the client and the output."""

import re
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from gwctl.client import Gateway
from gwctl.errors import CHANGES, NOT_ALLOWED, CommandError, usage
from gwctl.output import Output, Shape
from gwctl.profile import Settings
from gwctl.text import mask_keys

# Options that may stand anywhere on the line. Value options name their destination.
_SWITCHES = {
    "--jsonl": "lines",
    "-q": "quiet",
    "--quiet": "quiet",
    "-y": "yes",
    "--yes": "yes",
    "--debug": "debug",
    "--no-color": "no_color",
    "--wide": "wide",
}
_VALUES = {
    "--jq": "jq",
    "-P": "profile",
    "--profile": "profile",
    "--url": "url",
    "--timeout": "timeout",
}
_FIELD_LIST = re.compile(r"[A-Za-z_][\w.]*(,[A-Za-z_][\w.]*)*,?")

COMMON_HELP = """\
Everywhere:
  --json [FIELDS]   the API's JSON, or only these fields (id,name)
  --jq EXPR         filter that JSON; --jsonl prints one record a line
  -q, --quiet       ids only; a new secret alone; --wide shows every column
  -P, --profile     profile to use; --url, --timeout override it
  -y, --yes         do not ask; --debug shows the HTTP exchange; --no-color
"""


@dataclass
class Flags:
    """The options that every command understands."""

    json: bool = False
    fields: tuple[str, ...] = ()
    jq: str | None = None
    lines: bool = False
    quiet: bool = False
    yes: bool = False
    debug: bool = False
    no_color: bool = False
    wide: bool = False
    profile: str | None = None
    url: str | None = None
    timeout: str | None = None
    # A word after --json that may be a field or the command's own argument; app.py decides.
    doubtful: bool = field(default=False, repr=False)


def split_flags(arguments: Sequence[str], *, take_doubtful: bool = True) -> tuple[Flags, list[str]]:
    """Take the everywhere options out of a command line; what is left is the command's own."""
    flags = Flags()
    rest: list[str] = []
    words = list(arguments)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            rest += [word, *words]
            break
        if word in _SWITCHES:
            setattr(flags, _SWITCHES[word], True)
        elif name == "--json":
            flags.json = True
            text = value if equals else _following_fields(flags, words, rest, take_doubtful)
            flags.fields = tuple(part for part in text.split(",") if part)
        elif name in _VALUES:
            if not equals and not words:
                raise usage(f"{name} needs a value", do="gwctl --help")
            setattr(flags, _VALUES[name], value if equals else words.pop(0))
        else:
            rest.append(word)
    return flags, rest


def _following_fields(flags: Flags, words: list[str], rest: list[str], take_doubtful: bool) -> str:
    """The field list after --json, if the next word can be one."""
    if not words or not rest or not _FIELD_LIST.fullmatch(words[0]):
        return ""
    if "," not in words[0]:
        flags.doubtful = True
        if not take_doubtful:
            return ""
    return words.pop(0)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


class Session:
    """What a command works with."""

    def __init__(self, flags: Flags) -> None:
        self.flags = flags
        self.out = Output(
            Shape(
                json=flags.json,
                fields=flags.fields,
                jq=flags.jq,
                lines=flags.lines,
                quiet=flags.quiet,
                no_color=flags.no_color,
                wide=flags.wide,
            )
        )
        self.out.pager = lambda: self.settings.get("pager").value
        self.dry_run = False
        self.idempotency_key: str | None = None
        self.posts = 0
        self.limit = 30
        self.everything = False
        self.found_changes = False

    @cached_property
    def settings(self) -> Settings:
        flags = {"url": self.flags.url, "timeout": self.flags.timeout}
        return Settings(flags, profile=self.flags.profile)

    @cached_property
    def anonymous(self) -> Gateway:
        """The gateway without a credential, for what is public."""
        return self._gateway("")

    @cached_property
    def unchecked(self) -> Gateway:
        """The gateway of a profile that is only now being written."""
        return self._gateway("", known_profile=False)

    @cached_property
    def api(self) -> Gateway:
        """The gateway with the management key; exit 4 when there is none."""
        self.settings.require_known_profile()
        key = self.settings.secret("key")
        if not key:
            raise CommandError(
                "not logged in: there is no management key",
                exit_code=NOT_ALLOWED,
                code="not_logged_in",
                why=f"profile {self.settings.profile} holds none and GWCTL_KEY is not set",
                do="gwctl login, or set GWCTL_KEY",
            )
        return self._gateway(key)

    def _gateway(self, key: str, *, known_profile: bool = True) -> Gateway:
        if known_profile:
            self.settings.require_known_profile()
        return Gateway(
            self.settings.url(),
            key=key,
            timeout_s=self.settings.timeout_s(),
            debug=self.out.debug if self.flags.debug else None,
            show_waiting=not self.flags.quiet and not self.flags.debug,
            ca_file=self.settings.get("ca_file").value,
        )

    @property
    def interactive(self) -> bool:
        """Whether a person at a terminal can be asked."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    def confirm_name(self, what: str, name: str) -> None:
        """Before destroying: the name must be typed, or --yes given; exit 2 otherwise."""
        if self.flags.yes:
            return
        where = f"profile {self.settings.profile}, {mask_keys(self.settings.url())}"
        if not self.interactive:
            raise usage(
                f"{what} {name} needs a confirmation and there is no terminal to ask on",
                do="add --yes to do it; nothing was done",
                code="confirmation_needed",
            )
        self.out.note(f"This will {what} {name} ({where}). It cannot be undone.")
        if self.out.ask(f"Type {name} to confirm: ") != name:
            raise usage("the name does not match; nothing was done", code="not_confirmed")

    def agree(self, question: str, *, refused: CommandError, even_with_yes: bool = False) -> None:
        """A yes or no question; without a terminal or a yes, the refusal is raised."""
        if self.flags.yes and not even_with_yes:
            return
        if not self.interactive:
            raise refused
        answer = self.out.ask(f"{question} (profile {self.settings.profile}) [y/N] ")
        if answer.lower() not in ("y", "yes"):
            raise refused

    def accept_price(self, what: str) -> None:
        """A price that looks like a typing error: a person at a terminal confirms it, a script says --accept."""
        self.agree(
            f"{what}. Take it?",
            refused=CommandError(
                f"{what}; nothing was changed",
                code="price_not_accepted",
                why="it changes by more than tenfold, or is above $0.001 a token",
                do="add --accept if that is meant",
            ),
            even_with_yes=True,
        )

    def check(self) -> None:
        """Refuse shared options that cannot work before anything is done."""
        self.out.check()
        key = self.idempotency_key
        if key is not None and not (key.strip() == key and 0 < len(key) <= 240 and _is_plain(key)):
            raise usage(
                f"--idempotency-key {key!r} cannot be sent",
                do="1 to 240 letters, digits and signs of ASCII, without blanks around them",
            )

    def next_idempotency_key(self) -> str:
        """The given key for the first POST of a run, the key with a number for the others.

        Without one a key is made up, so that the whole command can be repeated with it.
        """
        if self.idempotency_key is None:
            self.idempotency_key = f"gwctl-{uuid.uuid4()}"
        self.api.repeat_with = self.idempotency_key
        self.posts += 1
        suffix = f"-{self.posts}" if self.posts > 1 else ""
        return f"{self.idempotency_key}{suffix}"

    @property
    def replayed(self) -> bool:
        """Whether the last answer was that of an earlier request with the same idempotency key."""
        return "api" in self.__dict__ and self.api.replayed

    @property
    def exit_code(self) -> int:
        """The exit code of a run that ended well."""
        return CHANGES if self.found_changes else 0

    def close(self) -> None:
        """Close the connections that were opened."""
        for name in ("api", "anonymous", "unchecked"):
            if name in self.__dict__:
                self.__dict__[name].close()
