"""The entry point: parses the line, runs the command and turns failures into exit codes."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.main import get_group

from gwctl import streams
from gwctl.errors import DONE, INTERRUPTED, USAGE, CommandError, usage
from gwctl.session import Flags, Session, split_flags
from gwctl.tree import SETTINGS, Root, misspelt

# typer carries its own copy of click; this is a public way to its errors.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]

COMPLETION_TIMEOUT = "2"  # seconds a shell waits for names that the gateway knows
HELP_TOPICS = ("exit-codes", "environment", "formatting")

_SECTIONS = (
    (
        "Use",
        (
            ("status", "status", "how the gateway is doing, on one page"),
            ("top", "top", "requests, cost and endpoints as they are now, redrawn"),
            ("open", "page", "the gateway's page in a browser, signed in"),
            ("login", "login", "store the address and a key in a profile"),
            ("logout", "login", "forget the keys of a profile"),
            ("whoami", "login", "which key, role and organization is used"),
            ("doctor", "server", "check the gateway and this machine for known trouble"),
            ("version", "help", "versions of gwctl and of the gateway"),
            ("completion", "help", "completion script for bash, zsh or fish"),
            ("help", "help", "help on a command or topic (exit-codes, environment, formatting)"),
        ),
    ),
    (
        "Try it",
        (
            ("chat", "chat", "send a prompt and stream the answer"),
            ("embed", "chat", "embed a text"),
            ("route", "route", "explain what would become of a request, and its cost"),
            ("launch", "launch", "start claude, codex or gemini against the gateway"),
        ),
    ),
    (
        "Access",
        (
            ("key", "key", "API keys: limits, models, rotation"),
            ("org", "org", "the organization and its settings"),
            ("workspace", "workspace", "workspaces; create one for a team in one command"),
            ("member", "member", "members, roles and invitations"),
        ),
    ),
    (
        "Money",
        (
            ("credit", "credit", "balance, grants, purchases, refunds, top-up"),
            ("ledger", "ledger", "every movement of credit, and its verification"),
            ("statement", "statement", "what a month came to, by workspace, key and model"),
            ("budget", "budget", "hard and soft budgets with forecasts"),
            ("usage", "usage", "what was used, by model, key, user, app or session"),
            ("reconcile", "reconcile", "a vendor's export beside the gateway's own count"),
        ),
    ),
    (
        "Models",
        (
            ("model", "model", "the catalog: models, prices, lifecycle"),
            ("prices", "prices", "the catalog's prices against the shipped price book"),
            ("provider", "provider", "upstream services and their credentials"),
            ("endpoint", "endpoint", "models served by providers: health, draining"),
            ("byok", "byok", "vendor keys of your own"),
        ),
    ),
    (
        "Watch",
        (
            ("activity", "activity", "requests, served and refused"),
            ("audit", "audit", "who changed what"),
            ("privacy", "privacy", "what is stored of requests and answers"),
            ("alert", "alert", "alerts raised, and who hears of which"),
            ("webhook", "webhook+listen", "where alerts go: webhooks, chat, mail; their deliveries"),
        ),
    ),
    (
        "Declare",
        (
            ("apply", "declare", "make the gateway match gw.toml"),
            ("diff", "declare", "what apply would change"),
            ("export", "declare", "write gw.toml from the running gateway"),
        ),
    ),
    (
        "Daemon",
        (
            ("server", "server+logs", "check and reload the daemon, and read its log"),
            ("config", "config", "profiles and settings of gwctl"),
        ),
    ),
)  # fmt: skip


class GwctlRoot(Root):
    sections = _SECTIONS
    plurals = {f"{name}s": name for _, rows in _SECTIONS for name, _, _ in rows} | {
        "activities": "activity",
    }


app = typer.Typer(
    cls=GwctlRoot,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    context_settings=SETTINGS,
    pretty_exceptions_enable=False,
)


def _version(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        from gwctl.client import own_version

        ctx.obj.out.line(f"gwctl {own_version()}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version.")
    ] = False,
) -> None:
    """The command line of a gwd gateway."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words and "GWCTL_COMPLETE" in os.environ:
        return _complete(os.environ["GWCTL_COMPLETE"])
    session = Session(Flags(json=any(word.startswith("--json") for word in words)))
    try:
        try:
            streams.prepare(words)
            session = _parsed(words)
            return _run(session, words)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except KeyboardInterrupt:
        session.out.note("")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (head, a closed pager) has seen enough: not an error of ours.
        streams.give_up_output()
        return DONE
    except Exception as error:
        found = _explained(error)
        if found is None or (session.flags.debug and not isinstance(error, CommandError | OSError)):
            raise
        if isinstance(error, OSError):
            streams.give_up_output()
        session.out.error(found)
        return found.exit_code


def _explained(error: Exception) -> CommandError | None:
    """What a person is told; None for what should never happen."""
    match error:
        case CommandError():
            return error
        case UnicodeError():
            return streams.undecodable(error)
        case OSError():
            return streams.failed(error)
        case LookupError() | TypeError() | AttributeError() | ValueError() | ArithmeticError():
            return _not_understood(error)
        case _:
            return None


def print_help(session: Session, words: Sequence[str]) -> None:
    """The help of a command, as `gwctl help key create` shows it."""
    session.out.line(_help_text(get_group(app), list(words)))


def _help_text(group: Any, words: list[str]) -> str:
    context = group.make_context("gwctl", [], resilient_parsing=True)
    command = group
    for word in words:
        found = command.get_command(context, word) if hasattr(command, "get_command") else None
        if found is None:
            known = command.list_commands(context) if hasattr(command, "list_commands") else []
            raise misspelt(context.command_path, word, [*known, *HELP_TOPICS])
        context = found.make_context(word, [], parent=context, resilient_parsing=True)
        command = found
    return str(command.get_help(context))


def _complete(words: str) -> int:
    from gwctl.completion import answers

    session = Session(Flags(timeout=COMPLETION_TIMEOUT))
    try:
        found = answers(get_group(app), words, lambda: _providers(session))
        session.out.line("\n".join(found))
        return DONE
    finally:
        session.close()


def _providers(session: Session) -> list[str]:
    """The providers' slugs; nothing where the gateway does not answer at once or wants a login."""
    from gwctl.catalog import PROVIDERS
    from gwctl.records import fetch

    try:
        return [str(row["slug"]) for row in fetch(session, PROVIDERS.path, everything=True)[0]]
    except CommandError:
        return []


def _parsed(words: list[str]) -> Session:
    flags, _ = split_flags(words)
    return Session(flags)


def _run(session: Session, words: list[str]) -> int:
    group = get_group(app)
    _, rest = split_flags(words)
    try:
        code = _invoke(group, rest, session)
    except _USAGE_ERROR as error:
        if not (session.flags.doubtful and type(error).__name__ == "MissingParameter"):
            return _wrong_usage(error, session)
        # `key show --json ci`: the word after --json was the command's argument after all.
        flags, rest = split_flags(words, take_doubtful=False)
        session = Session(flags)
        try:
            code = _invoke(group, rest, session)
        except _USAGE_ERROR as again:
            return _wrong_usage(again, session)
    return code or session.exit_code


def _invoke(group: Any, rest: list[str], session: Session) -> int:
    # Not group.main(): it would end the process itself when the reader of a pipe has left.
    try:
        with group.make_context("gwctl", rest, obj=session) as context:
            group.invoke(context)
    except typer.Exit as done:
        return int(done.exit_code)
    except typer.Abort:
        raise KeyboardInterrupt from None
    finally:
        session.close()
    return DONE


def _not_understood(error: Exception) -> CommandError:
    """A reply in another shape than the API's documents say."""
    return CommandError(
        "the gateway's reply was not understood",
        code="bad_reply",
        why=f"{type(error).__name__}: {error}",
        do="gwctl version compares the versions; --debug shows the reply and where it failed",
    )


def _wrong_usage(error: Any, session: Session) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        if error.ctx.parent is None:
            session.out.line(error.format_message())
            return DONE
        session.out.note(error.format_message())
        return USAGE
    path = error.ctx.command_path if error.ctx else "gwctl"
    message = str(error.format_message()).rstrip(".")
    session.out.error(usage(message[:1].lower() + message[1:], do=f"{path} --help"))
    return USAGE


if __name__ == "__main__":
    sys.exit(main())
