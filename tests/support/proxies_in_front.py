"""nginx and Caddy as examples/ has them, in front of a node on loopback: other addresses, the rest as it stands."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cases.caserunner.ports import free_port
from tests.support.certificates import authority, server_tls

EXAMPLES = Path(__file__).parents[2] / "examples"
NAME = "gateway.example.com"
PROGRAMS = ("nginx", "caddy")

Change = Callable[[str], str]

_NGINX = """
pid {folder}/pid;
daemon off;
error_log {folder}/log;
worker_processes 1;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{server}
}}
"""
_CADDY = """
{{
	admin off
	auto_https disable_redirects
	storage file_system {folder}
}}
{server}
"""


class InFront:
    """A proxy that runs: where clients find it, and what they have to trust."""

    def __init__(self, port: int, trust: Path) -> None:
        self.root = f"https://localhost:{port}"
        self.trust = trust


def is_there(program: str) -> bool:
    return shutil.which(program) is not None and shutil.which("curl") is not None


@asynccontextmanager
async def in_front(
    program: str, upstream: int, change: Change = lambda text: text
) -> AsyncIterator[InFront]:
    """The program with its example, before a node at the port `upstream`; `change` is made to the example."""
    with tempfile.TemporaryDirectory(prefix="front-") as place:
        folder, port = Path(place), free_port()
        trusted = authority(folder)
        server_tls(folder, by=trusted)
        file = folder / "config"
        if program == "nginx":
            folder.chmod(0o755)  # its workers are another user's where the tests are root's
            server = _nginx(folder, port, upstream, change)
            command = ["nginx", "-c", str(file), "-p", place]
        else:
            server = _caddy(folder, port, upstream, change)
            command = ["caddy", "run", "--config", str(file), "--adapter", "caddyfile"]
        file.write_text(server)
        with (folder / "said").open("w") as said:
            process = await asyncio.create_subprocess_exec(
                *command,
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": place},
                stdout=asyncio.subprocess.DEVNULL,
                stderr=said,
            )
        try:
            await _listening(process, port, folder)
            yield InFront(port, trusted.file)
        finally:
            if process.returncode is None:
                process.terminate()
            async with asyncio.timeout(20):
                await process.wait()


def _nginx(folder: Path, port: int, upstream: int, change: Change) -> str:
    example = change((EXAMPLES / "nginx.conf").read_text())
    for mine, its in (
        ("server 127.0.0.1:8080;", f"server 127.0.0.1:{upstream};"),
        ("listen 443 ssl http2;", f"listen 127.0.0.1:{port} ssl http2;"),
        (f"server_name {NAME};", "server_name localhost;"),
        ("/etc/ssl/gateway.pem", f"{folder}/server.pem"),
        ("/etc/ssl/gateway.key", f"{folder}/server.pem"),
    ):
        assert mine in example, mine
        example = example.replace(mine, its)
    return _NGINX.format(folder=folder, server=example)


def _caddy(folder: Path, port: int, upstream: int, change: Change) -> str:
    example = change((EXAMPLES / "Caddyfile").read_text())
    tls = f"\ttls {folder}/server.pem {folder}/server.pem\n\tbind 127.0.0.1\n"
    for mine, its in (
        (f"\n{NAME} {{\n", f"\nhttps://localhost:{port} {{\n{tls}"),
        ("reverse_proxy 127.0.0.1:8080", f"reverse_proxy 127.0.0.1:{upstream}"),
    ):
        assert mine in example, mine
        example = example.replace(mine, its)
    return _CADDY.format(folder=folder, server=example)


async def _listening(process: asyncio.subprocess.Process, port: int, folder: Path) -> None:
    async with asyncio.timeout(60):
        while True:
            assert process.returncode is None, (folder / "said").read_text()
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionError:
                await asyncio.sleep(0.02)
                continue
            writer.close()
            return
