"""gwd demo: what it prints works when it is pasted, and nothing of it stays."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import httpx
import msgspec
import openai
import pytest

from tests.cases.caserunner.ports import free_port
from tests.commands.conftest import ROOT


class Shown(msgspec.Struct, frozen=True):
    """A demo that serves, and all it printed before it did."""

    process: subprocess.Popen[str]
    text: str
    base_url: str
    key: str
    management_key: str


@contextmanager
def demo(tmp_path, **environ: str) -> Iterator[Shown]:
    process = subprocess.Popen(
        [sys.executable, "-m", "gwd", "demo", "--port", str(free_port())],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(tmp_path),
            **environ,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        with process.stdout:
            lines = []
            for line in process.stdout:
                lines.append(line)
                if "gwctl ledger list" in line:
                    break
            text = "".join(lines)
            found = re.search(r"GWCTL_URL=(\S+) GWCTL_KEY=(gwm_\w+)", text)
            inference = re.search(r"gwi_\w+", text)
            assert found, text
            assert inference, text
            yield Shown(process, text, found[1], inference[0], found[2])
    finally:
        process.kill()
        process.wait()


def stop(shown: Shown) -> int:
    shown.process.send_signal(signal.SIGTERM)
    return shown.process.wait(timeout=30)


@pytest.fixture
def shown(tmp_path) -> Iterator[Shown]:
    with demo(tmp_path) as shown:
        yield shown


def test_once_shows_text_receipt_and_a_ledger_that_adds_up(gwd):
    done = gwd("demo", "--once")
    assert (done.code, done.err) == (0, "")
    assert "the ledger adds up" in done.out
    charged = re.search(r"charged\W+([\d.]+) USD", done.out)
    parts = re.findall(r"(?:prompt|completion)\W+([\d.]+) USD", done.out)
    entries = re.findall(r"(purchase|reservation|settlement|charge)\W+?(-?[\d.]+)", done.out)
    assert charged is not None
    assert Decimal(charged[1]) == sum(map(Decimal, parts)) > 0
    assert [name for name, _ in entries] == ["purchase", "reservation", "settlement", "charge"]
    amounts = {name: Decimal(amount) for name, amount in entries}
    assert amounts["purchase"] == 10
    assert amounts["reservation"] == -amounts["settlement"]
    assert amounts["charge"] == -Decimal(charged[1])


def test_the_printed_curl_line_streams_an_answer_with_its_receipt(shown):
    line = shown.text.split("curl\n", 1)[1].split("\n\nopenai SDK", 1)[0]
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert '"gateway_metadata"' in done.stdout
    assert done.stdout.rstrip().endswith("data: [DONE]")


def test_the_printed_python_lines_answer(shown):
    code = shown.text.split("openai SDK\n", 1)[1].split("\n\nbase address", 1)[0]
    program = "\n".join(line.removeprefix("  ") for line in code.splitlines())
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert len(done.stdout) > 10


def test_the_simulated_models_answer_in_every_dialect(shown):
    headers = {"x-api-key": shown.key}
    bodies: dict[str, dict[str, Any]] = {
        "messages": {"model": "demo/claude-demo", "max_tokens": 50,
                     "messages": [{"role": "user", "content": "Hi"}]},
        "responses": {"model": "demo/gpt-demo", "input": "Hi"},
        "completions": {"model": "demo/gpt-demo", "prompt": "Hi"},
        "embeddings": {"model": "demo/embed-demo", "input": "Hi"},
        "chat/completions": {"model": "demo/gemini-demo", "reasoning_effort": "low",
                             "messages": [{"role": "user", "content": "Hi"}]},
    }  # fmt: skip
    assert all(body["model"] in shown.text for body in bodies.values())
    for name, body in bodies.items():
        answer = httpx.post(f"{shown.base_url}/{name}", json=body, headers=headers)
        assert answer.status_code == 200, (name, answer.text)


def test_models_of_a_real_vendor_join_when_its_key_is_set(tmp_path):
    with demo(
        tmp_path, OPENAI_API_KEY="sk-not-used", ANTHROPIC_API_KEY="", GEMINI_API_KEY=" "
    ) as it:
        assert "try openai/gpt-5-mini" in it.text
        assert "sk-not-used" not in it.text
        with openai.OpenAI(base_url=it.base_url, api_key=it.key) as client:
            names = {model.id for model in client.models.list()}
    assert {"openai/gpt-5-mini", "openai/gpt-5.4-mini", "demo/gpt-demo"} <= names
    assert not [name for name in names if name.startswith(("anthropic/", "google/"))]


def test_nothing_stays_when_it_ends(shown, tmp_path):
    assert list(tmp_path.iterdir())
    assert stop(shown) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_taken_port_is_one_line(gwd):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = gwd("demo", "--port", str(taken.getsockname()[1]))
    assert done.code == 1
    assert done.err == "error: the port is in use; choose another with --port\n"


def test_an_interrupted_request_is_130_without_a_trace(tmp_path):
    for wait_s in (0.0, 0.2, 0.5, 0.8):
        process = subprocess.Popen(
            [sys.executable, "-m", "gwd", "demo", "--once"],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        while not list(tmp_path.iterdir()) and process.poll() is None:
            time.sleep(0.01)  # the interpreter's own start is not ours
        time.sleep(wait_s)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert (process.returncode, err) in ((130, ""), (0, ""))  # 0: it was done before
        assert list(tmp_path.iterdir()) == []
