"""How commands are declared: nouns, verbs with two examples each, and lazy loading of both."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from gwctl.errors import usage
from gwctl.session import COMMON_HELP, Session
from gwctl.values import whole

SETTINGS = {"help_option_names": ["-h", "--help"]}

_DRY_RUN = Annotated[bool, typer.Option("--dry-run", help="Say what would change; exit 8.")]
_IDEMPOTENCY_KEY = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key", metavar="KEY", help="Repeat safely: the same key makes one record."
    ),
]
_LIMIT = Annotated[int, whole("--limit", "N", "How many records to show.", least=1)]
_ALL = Annotated[bool, typer.Option("--all", help="Every record, however many there are.")]


_TAKES_AWAY = {"delete", "remove", "revoke", "disable", "refund", "retire", "logout"}


# What needs the node itself, where people look for it here.
_ELSEWHERE = {
    ("gwctl server", "backup"): "on the node: gwd backup FILE (also while it serves)",
    ("gwctl server", "restore"): "on the stopped node: gwd restore FILE",
}


class Noun:
    """A noun of the command line; its verbs are functions whose first parameter is the Session."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.examples: dict[str, tuple[str, ...]] = {}
        self.app = typer.Typer(
            name=name,
            help=text,
            cls=Group,
            no_args_is_help=True,
            rich_markup_mode=None,
            add_completion=False,
            context_settings=SETTINGS,
            pretty_exceptions_enable=False,
        )
        self.app.callback()(_nothing)

    def verb(
        self, name: str, *examples: str, writes: bool = False, lists: bool = False
    ) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Declare a verb. `writes` adds --dry-run, `lists` adds --limit and --all."""

        def declare(run: Callable[..., None]) -> Callable[..., None]:
            self.examples[name] = examples
            self.app.info.epilog = _epilog(self._two_examples())
            command = _with_session(run, writes=writes, lists=lists)
            self.app.command(name, epilog=_epilog(examples), context_settings=SETTINGS)(command)
            return run

        return declare

    def _two_examples(self) -> list[str]:
        """The first examples of the first two verbs; both of a noun's only one."""
        shown = [examples[0] for examples in self.examples.values()][:2]
        return shown if len(shown) == 2 else list(next(iter(self.examples.values())))[:2]

    def group(self, noun: "Noun") -> None:
        """Hang a noun below this one (`model price …`)."""
        self.app.add_typer(noun.app, name=noun.name)


def _nothing() -> None:
    """A callback keeps a noun with a single verb a noun."""


def _with_session(run: Callable[..., None], *, writes: bool, lists: bool) -> Callable[..., None]:
    """The function typer sees: the Session is replaced by a context, shared options are added."""
    own = list(inspect.signature(run, eval_str=True).parameters.values())[1:]
    shared: list[tuple[str, Any, Any]] = []
    if writes:
        shared += [("dry_run", _DRY_RUN, False), ("idempotency_key", _IDEMPOTENCY_KEY, None)]
    if lists:
        shared += [("limit", _LIMIT, 30), ("everything", _ALL, False)]
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter("ctx", keyword, annotation=typer.Context),
        *(p.replace(kind=keyword) for p in own),
        *(inspect.Parameter(n, keyword, annotation=a, default=d) for n, a, d in shared),
    ]

    def command(ctx: typer.Context, **arguments: Any) -> None:
        session: Session = ctx.obj
        for name, _, _ in shared:
            setattr(session, name, arguments.pop(name))
        session.check()
        run(session, **arguments)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    command.__doc__ = run.__doc__
    command.__name__ = run.__name__
    return command


def _epilog(examples: Sequence[str]) -> str:
    lines = "\n".join(f"  $ {example}" for example in examples)
    return f"\b\nExamples:\n{lines}\n\n\b\n{COMMON_HELP}"


class Group(TyperGroup):
    """A noun's verbs; a misspelt verb names the nearest."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            if ctx.resilient_parsing:
                return None, None, args[1:]
            raise misspelt(ctx.command_path, name, self.list_commands(ctx))
        return super().resolve_command(ctx, args)


# What other programs call our verbs.
_SYNONYMS = {
    "get": ("show", "list"), "view": ("show",), "describe": ("show",), "info": ("show",), "inspect": ("show",),
    "ls": ("list",), "rm": ("delete", "remove"), "del": ("delete", "remove"), "remove": ("delete",),
    "revoke": ("delete", "disable", "remove"), "new": ("create", "add", "invite"), "add": ("create", "invite"),
    "create": ("add", "set", "invite"), "make": ("create", "add"), "edit": ("update", "set"), "set": ("update",),
    "modify": ("update",), "patch": ("update",), "roll": ("rotate",), "renew": ("rotate",),
}  # fmt: skip


def misspelt(path: str, name: str, known: Sequence[str]) -> Exception:
    meant = [verb for verb in _SYNONYMS.get(name.lower(), ()) if verb in known]
    nearest = meant[:1] or get_close_matches(name, known, n=1, cutoff=0.5)
    if nearest and nearest[0] in _TAKES_AWAY and not meant:
        # Whoever wants to update must not be led to delete.
        nearest = get_close_matches(name, nearest, cutoff=0.75)
    if found := _ELSEWHERE.get((path, name)):
        return usage(f"{path} has no command {name}", do=found, code="unknown_command")
    do = f"did you mean: {path} {nearest[0]}" if nearest else f"{path} --help lists the commands"
    return usage(f"{path} has no command {name}", do=do, code="unknown_command")


class Root(Group):
    """The root: knows every noun by name and loads its module when it is used."""

    sections: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = ()
    plurals: Mapping[str, str] = MappingProxyType({})

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for _, rows in self.sections for name, _, _ in rows]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        name = self.plurals.get(cmd_name, cmd_name)
        module = {n: m for _, rows in self.sections for n, m, _ in rows}.get(name)
        if module is None:
            return None
        loaded = [import_module(f"gwctl.commands.{part}") for part in module.split("+")]
        for noun in loaded[0].NOUNS:
            group = get_group(noun.app)
            if noun.name == name:
                return group
            if name in group.commands and noun.name == "":
                return group.commands[name]
        raise AssertionError(f"gwctl.commands.{module} does not declare {name}")

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The whole tree on one page, without importing any of it."""
        formatter.write("Usage: gwctl NOUN VERB [OPTIONS] [ARGS]...\n")
        formatter.write("\nThe command line of a gwd gateway. It speaks HTTP only.\n")
        for title, rows in self.sections:
            formatter.write(f"\n{title}\n")
            for name, _, text in rows:
                formatter.write(f"  {name:<12} {text}\n")
        formatter.write(f"\n{COMMON_HELP}\n")
        formatter.write("Examples:\n")
        formatter.write("  $ gwctl key create ci --limit 50 --reset monthly\n")
        formatter.write(
            "  $ gwctl activity list --last 1h --status error --json id,model,status\n\n"
        )
        formatter.write(
            "Every noun has --help. More: gwctl help exit-codes, environment, formatting\n"
        )
