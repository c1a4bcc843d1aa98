"""`gwctl help`, `version`, `completion`."""

from collections.abc import Callable
from typing import Annotated

from gwctl import connection_trouble
from gwctl.client import own_version
from gwctl.errors import EXIT_CODES, NOT_ALLOWED, NOT_FOUND, CommandError, usage
from gwctl.profile import ENVIRONMENT, config_path
from gwctl.records import data
from gwctl.session import Session
from gwctl.text import mask_keys
from gwctl.tree import Noun
from gwctl.values import arg

_ELSEWHERE = ("redirected", "http_200", "http_401", "http_403", "http_404")

top = Noun("", "Help and versions.")
NOUNS = [top]

FORMATTING = """\
On a terminal lists are tables; without one the same columns are separated by tabs, without titles
and with exact values. Scripts read names, not titles:

  --json              the API's own JSON; a list is one array, a record one object; a new secret
                      stands in its record
  --json id,name      only these fields; dots reach inside (pricing.prompt); an unknown one is an
                      error that names those there are
  --jsonl             one record a line
  --jq EXPR           filter the JSON; text results are printed without quotes
  -q                  ids only; after create and rotate the new secret alone

--jq understands a part of jq: . .a .a.b .["a b"] .[0] .[1:3] .[] ? | , // and or not
== != < <= > >= + - * / {a, b: .c} [ ] ( ) and length keys add sort unique reverse first last
min max tostring tonumber to_entries select(f) map(f) sort_by(f) has(k) join(s) startswith(s)
endswith(s) contains(s).

Money is US dollars: four significant digits on a terminal, all digits in JSON. Times are relative
on a terminal, ISO 8601 UTC otherwise. Times in: 7d, yesterday, 2026-11-01, 2026-11-01T09:00:00Z.
Data goes to stdout; notes, progress and errors go to stderr. With --json an error is one object on
stderr (code, message, hint, request_id) and stdout stays empty."""


def _exit_codes() -> str:
    lines = [f"  {code:>3}  {name:<30} {text}" for code, name, text in EXIT_CODES]
    return "\n".join(["Exit codes of gwctl:", "", *lines])


def _environment() -> str:
    lines = [f"  {name:<20} {text}" for name, text in ENVIRONMENT]
    return "\n".join(
        [
            "A flag wins over the environment, the environment over the profile, the profile over",
            "the default. `gwctl config list --show-origin` tells where each value comes from.",
            "",
            *lines,
            "",
            f"The profile file is {config_path()}, mode 0600:",
            "",
            '  current = "prod"',
            "  [profile.prod]",
            '  url = "https://gw.example.com/api/v1"',
            '  key_command = "pass show gw"',
        ]
    )


_TOPICS: dict[str, Callable[[], str]] = {
    "exit-codes": _exit_codes,
    "environment": _environment,
    "formatting": lambda: FORMATTING,
}


@top.verb("help", "gwctl help exit-codes", "gwctl help key create")
def help_(
    session: Session,
    words: Annotated[list[str] | None, arg("TOPIC", "A topic or a command.")] = None,
) -> None:
    """Help on a command, or on exit-codes, environment, formatting."""
    if words and words[0] in _TOPICS:
        session.out.line(_TOPICS[words[0]]())
        return
    from gwctl.app import print_help

    print_help(session, words or [])


@top.verb("version", "gwctl version", "gwctl version --json")
def version(session: Session) -> None:
    """Versions of gwctl and, if it can be reached, of the gateway."""
    record = {"gwctl": own_version(), "gateway": None, "url": mask_keys(session.settings.url())}
    try:
        record["gateway"] = gateway_version(session)
    except CommandError as error:
        session.out.note(f"note: {error.what}")
    if session.out.shape.machine:
        session.out.data(record)
        return
    session.out.line(f"gwctl {record['gwctl']}")
    if record["gateway"]:
        name = "gwd" if record["gateway"] == "unknown" else f"gwd {record['gateway']}"
        session.out.line(f"{name} at {record['url']}")


def gateway_version(session: Session) -> str:
    """The gateway's version as the operator sees it; `unknown` for other keys."""
    health(session, "healthz")
    if not session.settings.secret("key"):
        return "unknown"
    try:
        status = data(session.api.get("/operator/status"))
    except CommandError as error:
        if error.exit_code in (NOT_ALLOWED, NOT_FOUND):
            return "unknown"
        raise
    return str(status.get("version", "unknown"))


def health(session: Session, name: str) -> str:
    """What a health page says. Behind a proxy with a path of its own it may stand beside the API or at the root."""
    failure: CommandError | None = None
    for root in connection_trouble.roots(session.settings.url()):
        try:
            answer = session.anonymous.probe(f"{root}/{name}")
        except CommandError as error:
            # What the node itself says of this page counts; what somebody else says of it, only if all do.
            if error.code not in (*_ELSEWHERE, "no_such_route"):
                raise
            failure = failure or error
        else:
            return answer
    assert failure is not None
    raise failure


@top.verb(
    "completion",
    "gwctl completion bash > ~/.local/share/bash-completion/completions/gwctl",
    "gwctl completion zsh > ~/.zfunc/_gwctl",
)
def completion(session: Session, shell: Annotated[str, arg("SHELL", "bash, zsh or fish.")]) -> None:
    """Print the completion script of a shell."""
    from gwctl.completion import SCRIPTS

    if shell not in SCRIPTS:
        raise usage(f"no completion for {shell}", do=f"one of: {', '.join(SCRIPTS)}")
    session.out.line(SCRIPTS[shell].rstrip("\n"))
