"""Help everywhere: two examples each, all of them real command lines; fast; nothing left out."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from typer.main import get_group

from gwctl.app import app
from gwctl.errors import CommandError
from gwctl.session import Session, split_flags
from tests.cli.conftest import ROOT, Run
from tests.cli.gateway import KEY, FakeGateway

GROUP: Any = get_group(app)


def commands(group: Any = GROUP, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands())
TREE = """
status top statement login chat apply doctor logout whoami version completion embed launch diff export help
route explain estimate
key list show create update rotate disable enable delete
org list show create update suspend resume settings
workspace list show create update settings delete
member list invite role remove invitations revoke accept
credit balance grant purchase refund topup
ledger list show verify head
budget list show set forecast delete raise enforce simulate
usage summary export
model list show add update alias deprecate retire undo-retire
provider list add show update test models secret disable delete
endpoint list show add weights update enable disable drain health
activity list show tail export
alert list
server check reload logs
config list get set use path
audit list
"""


def test_the_tree_of_commands_is_complete() -> None:
    top, *nouns = TREE.strip().splitlines()
    wanted = set(top.split())
    for line in nouns:
        noun, *verbs = line.split()
        wanted |= {f"{noun} {verb}" for verb in verbs}
    wanted |= {"model price show", "model price set", "model price history"}
    assert wanted - COMMANDS.keys() == set()


def examples(command: Any) -> list[str]:
    lines = str(command.epilog or "").splitlines()
    return [line.strip()[2:] for line in lines if line.strip().startswith("$ ")]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_two_examples(name: str) -> None:
    assert COMMANDS[name].help
    assert len(examples(COMMANDS[name])) >= 2


def _lines(example: str) -> list[list[str]]:
    """The gwctl command lines inside an example, which may be a pipeline or an assignment."""
    text = example.replace("$(", " ").replace(")", " ") if "$(" in example else example
    lines: list[list[str]] = []
    current: list[str] | None = None
    for word in shlex.split(text, posix=True):
        if word.endswith("gwctl") and ("=" in word or word == "gwctl"):
            current = []
            lines.append(current)
        elif word in ("|", "&&", "<", ">"):
            current = None
        elif current is not None:
            current.append(word)
    return lines


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_is_a_line_that_parses(name: str) -> None:
    for example in examples(COMMANDS[name]):
        found = _lines(example)
        assert found, example
        for words in found:
            flags, rest = split_flags(words)
            _parse(rest, Session(flags))


def _parse(words: list[str], session: Session) -> None:
    """Resolve and parse without running; raises what a user would see."""
    context = GROUP.make_context("gwctl", [], resilient_parsing=True)
    command = GROUP
    while hasattr(command, "list_commands"):
        name, command, words = command.resolve_command(context, words)
        if command is None:
            raise CommandError(f"no command {name}")
    command.make_context("x", words, parent=None, obj=session)


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("noun", ["", "key", "model price", "key create", "apply"])
def test_both_help_flags_work_everywhere(run: Run, noun: str, flag: str) -> None:
    code, out, _ = run(*noun.split(), flag)
    assert code == 0
    assert out.startswith("Usage: gwctl")


def test_root_help_names_every_noun_and_imports_none(run: Run) -> None:
    out = run("--help").out
    for name in GROUP.list_commands(None):
        assert f"  {name} " in out


COUNTED = """
import sys
calls = 0
def count(*_):
    global calls
    calls += 1
sys.setprofile(count)
from gwctl.app import main
code = main(sys.argv[1:])
sys.setprofile(None)
print(code, calls, *sys.modules, file=sys.stderr)
"""


class Cost(NamedTuple):
    """What a command pays: function calls are the same on every machine, busy or not."""

    calls: int
    modules: list[str]


def cost_of(*words: str, **environment: str) -> Cost:
    """Of a whole command in a process of its own, with its imports."""
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, *words],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    code, calls, *modules = done.stderr.split()
    assert code == "0"
    return Cost(int(calls), modules)


def test_help_costs_little_and_leaves_httpx_and_rich_alone() -> None:
    cost = cost_of("--help")
    assert not {"httpx", "rich", "tomlkit"} & set(cost.modules)
    assert cost.calls < 320_000  # 240,000 when this was written


def test_completion_answers_with_what_may_follow(run: Run, monkeypatch: Any) -> None:
    monkeypatch.setenv("GWCTL_COMPLETE", "key")
    assert "rotate" in run().out.split()
    monkeypatch.setenv("GWCTL_COMPLETE", "key rotate")
    assert "--overlap" in run().out.split()


def test_completion_names_providers_where_an_option_takes_one(
    run: Run, gateway: FakeGateway, monkeypatch: Any
) -> None:
    gateway.collection("/catalog/providers", {"slug": "openai"}, {"slug": "azure"})
    for words in ("key update ci --provider", "key create ci --sort price --ignore-provider"):
        monkeypatch.setenv("GWCTL_COMPLETE", words)
        assert run().out.split() == ["openai", "azure"]
    monkeypatch.setenv("GWCTL_URL", "http://127.0.0.1:9/v1")
    assert run().out.split() == []


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_each_shell_has_a_completion_script(run: Run, name: str) -> None:
    assert "GWCTL_COMPLETE" in run("completion", name).out


def test_bash_completion_completes(shell: Any) -> None:
    script = (
        'eval "$(gwctl completion bash)"; COMP_WORDS=(gwctl key ro); COMP_CWORD=2; _gwctl;'
        ' echo "${COMPREPLY[@]}"'
    )
    assert shell("bash", "-c", script).stdout == "rotate\n"


def test_no_arguments_show_help_and_a_bare_noun_is_wrong_usage(run: Run) -> None:
    assert run().code == 0
    code, out, err = run("key")
    assert (code, out) == (2, "")
    assert "create" in err


def test_a_list_costs_little_and_loads_no_library_it_does_not_need(gateway: Any, home: Any) -> None:
    gateway.collection("/keys", {"id": "key_1", "name": "ci", "limit": 5})
    cost = cost_of("key", "list", GWCTL_URL=gateway.url, GWCTL_KEY=KEY)
    heavy = {"pydantic", "rich", "click", "pygments", "tomlkit", "cryptography", "sanic", "msgspec"}
    assert not {name.partition(".")[0] for name in cost.modules} & {*heavy, "asyncio"}
    assert len(cost.modules) < 330
    assert cost.calls < 600_000  # 470,000 when this was written
