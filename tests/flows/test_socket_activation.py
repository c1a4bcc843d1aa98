"""A socket that the service manager keeps: over restarts under load no request fails, and wrong sockets are named."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.flows.started import Started, started, stop, vendor

__all__ = ["started", "vendor"]

RESTARTS = int(os.environ.get("RESTARTS", "3"))
CLIENTS = 6


class Manager:
    """Keeps a listening socket and hands it to one process after the other, as systemd does."""

    def __init__(self, folder: Path, key: str) -> None:
        self.folder, self.key = folder, key
        self.log = folder / "log"
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.socket.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *, port: int | None = None, count: int = 1) -> "subprocess.Popen[bytes]":
        number = self.socket.fileno()
        script = f'exec 3<&{number}; export LISTEN_PID=$$ LISTEN_FDS={count}; exec "$@"'
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [
                    *("bash", "-c", script, "bash", sys.executable, "-m", "gwd", "serve"),
                    *("--config", str(self.folder), "--port", str(port or self.port)),
                ],
                pass_fds=(number,),
                stderr=log,
            )
        return self.process

    def restart(self) -> None:
        """As `systemctl restart` does: the next process when the one before has ended."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0
        self.start()
        self.wait()

    def wait(self) -> None:
        """Until the process answers; the question waits in the socket."""
        url = f"http://127.0.0.1:{self.port}/readyz"
        assert httpx.get(url, timeout=60).status_code == httpx.codes.OK

    def last_words(self) -> str:
        """What a process said that did not start."""
        assert self.process is not None
        assert self.process.wait(60) == 1
        said = self.log.read_text()
        assert "Traceback" not in said
        return said

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.socket.close()


@pytest.fixture
async def manager(started: Started) -> AsyncIterator[Manager]:
    running, gateway = await started.start()
    await stop(running, gateway)
    made = Manager(started.nodes.folder, started.key)
    yield made
    made.close()


async def test_no_request_fails_while_the_service_restarts(manager: Manager) -> None:
    manager.start()
    await asyncio.to_thread(manager.wait)
    answered: list[int] = []
    failed: list[str] = []
    ending = threading.Event()

    def ask(is_kept: bool) -> None:
        with contextlib.ExitStack() as stack:
            client = stack.enter_context(httpx.Client(verify=False, timeout=60))
            while not ending.is_set():
                try:
                    reply = client.post(
                        f"http://127.0.0.1:{manager.port}/api/v1/chat/completions",
                        json={
                            "model": "demo/chat",
                            "messages": [{"role": "user", "content": "hi"}],
                        },
                        headers={
                            "authorization": f"Bearer {manager.key}",
                            "connection": "keep-alive" if is_kept else "close",
                        },
                    )
                except httpx.HTTPError as error:
                    failed.append(repr(error))
                else:
                    answered.append(reply.status_code)
                    if reply.status_code != httpx.codes.OK:
                        failed.append(reply.text)

    threads = [threading.Thread(target=ask, args=(number % 2 == 0,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    seen = []
    for _ in range(RESTARTS):
        await asyncio.sleep(1)
        seen.append(len(answered))
        await asyncio.to_thread(manager.restart)
    await asyncio.sleep(2)
    ending.set()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert failed[:3] == []
    assert seen == sorted(set(seen))
    assert len(answered) > seen[-1]


async def test_a_socket_of_another_address_is_refused(manager: Manager) -> None:
    manager.start(port=1 + manager.port % 60_000)
    said = await asyncio.to_thread(manager.last_words)
    assert f"gwd.socket listens on 127.0.0.1:{manager.port}" in said
    assert "give both the same address" in said


async def test_several_sockets_are_refused(manager: Manager) -> None:
    manager.start(count=2)
    said = await asyncio.to_thread(manager.last_words)
    assert "hands over 2 sockets; name one ListenStream" in said
