"""The blocks of docs/clients.md work as they stand: each is run against a demo node with the key that it printed."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases.caserunner.ports import free_port

PAGE = (Path(__file__).parents[2] / "docs" / "clients.md").read_text("utf-8")
PROGRAMS = Path(sys.executable).parent


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What the first block of the page exports, for a demo node of our own."""
    port = free_port()
    node = subprocess.Popen(
        [PROGRAMS / "gwd", "demo", "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert node.stdout is not None
        said = ""
        while "gwctl ledger list" not in said:
            line = node.stdout.readline()
            assert line, said
            said += line
        key = re.findall(r"Bearer (gwi_\w+)", said)[0]
        gateway = f"http://127.0.0.1:{port}/api"
        yield {
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
            "HOME": str(tmp_path_factory.mktemp("home")),
            "LANG": "C.UTF-8",
            "GATEWAY": gateway,
            "KEY": key,
            "GWCTL_URL": f"{gateway}/v1",
            "GWCTL_INFERENCE_KEY": key,
        }
    finally:
        node.send_signal(signal.SIGTERM)
        try:
            node.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            node.kill()
            node.communicate()


def block(title: str, number: int = 0) -> str:
    part = PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    blocks: list[str] = re.findall(r"^```\w+\n(.*?)^```", part, re.MULTILINE | re.DOTALL)
    return blocks[number]


def run(words: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_curl(environment: dict[str, str]) -> None:
    said = run(["sh", "-c", block("curl")], environment)
    assert '"gateway_metadata"' in said
    assert said.rstrip().endswith("data: [DONE]")


@pytest.mark.parametrize("title", ["openai SDK", "anthropic SDK", "google-genai SDK"])
def test_a_block_of_python(title: str, environment: dict[str, str]) -> None:
    assert len(run([sys.executable, "-c", block(title)], environment)) > 20


def test_gwctl(environment: dict[str, str]) -> None:
    line = block("gwctl").splitlines()[0]
    assert len(run(["sh", "-c", line], environment)) > 20


def test_what_is_asked_before_sending(environment: dict[str, str]) -> None:
    said = run(
        ["sh", "-c", block("Before sending: what would happen, and what it would cost")],
        environment,
    )
    explained, estimated = '"serves":"', '"dearest":{"model":"demo/claude-demo"'
    assert explained in said
    assert estimated in said
    assert "1\tdemo" in said


def test_the_environment_of_claude_code_is_what_the_page_says(environment: dict[str, str]) -> None:
    printed = run(
        ["gwctl", "launch", "claude", "--print", "--model", "anthropic/claude-haiku-4-5"],
        environment,
    )
    by_hand = block("Claude Code", 1).replace("$GATEWAY", environment["GATEWAY"]).split()[:-1]
    names = dict(line.split("=", 1) for line in printed.splitlines()[:-1])
    for name, value in (word.split("=", 1) for word in by_hand):
        assert name in names
        assert value == "$KEY" or names[name] == value


def test_the_environment_of_gemini_is_what_the_page_says(environment: dict[str, str]) -> None:
    printed = run(
        ["gwctl", "launch", "gemini", "--print", "--model", "google/gemini-3.6-flash"], environment
    )
    by_hand = block("Gemini CLI", 1).replace("$GATEWAY", environment["GATEWAY"]).split()[:-1]
    names = dict(line.split("=", 1) for line in printed.splitlines()[:-1])
    assert names.pop("GEMINI_CLI_SYSTEM_SETTINGS_PATH").endswith("gemini-cli.json")
    assert names.keys() == {word.partition("=")[0] for word in by_hand}
    for name, value in (word.split("=", 1) for word in by_hand):
        assert value == "$KEY" or names[name] == value


def test_the_provider_of_codex_is_what_the_page_says(environment: dict[str, str]) -> None:
    printed = run(["gwctl", "launch", "codex", "--print"], environment)
    given = dict(re.findall(r'model_providers\.gateway\.(\w+)="([^"]+)"', printed))
    table = dict(re.findall(r'^(\w+) = "([^"]+)"', block("Codex", 1), re.MULTILINE))
    assert {name: table[name] for name in ("name", "env_key", "wire_api")} == {
        name: given[name] for name in ("name", "env_key", "wire_api")
    }
    assert given["base_url"] == f"{environment['GATEWAY']}/v1"
