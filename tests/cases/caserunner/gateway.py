"""The gateway under test: its process and its clock."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .assertions import cut, load_json_or_none
from .ports import HOST, free_port
from .wire import send

if TYPE_CHECKING:
    from tests.support.warm import WarmProcess

    from .prepared import Prepared
    from .vendors import Vendors

PROJECT = Path(__file__).resolve().parents[3]
INIT_LIMIT_S = 60
START_LIMIT_S = 30
STOP_LIMIT_S = 20
SETUP_BEFORE_NOW_S = 60  # setup runs this long before `now`: keys that expire at `now` can be made
FAKETIME_LIBRARY = next(map(str, Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
# libfaketime 0.9.10 breaks time.sleep of Python 3.11 (clock_nanosleep on the monotonic clock).
SITECUSTOMIZE = "import select, time\ntime.sleep = lambda seconds: select.select([], [], [], seconds) and None\n"


@dataclass(frozen=True)
class Options:
    """The gateway under test: a process from this project, or one that runs already at `base_url`.

    `fresh` may name a folder that `gwd init` made and nobody has served: cases without a clock begin with a copy.
    `prepared` has such folders with a catalogue in them.
    `warm` starts daemons as forks of a process that has imported everything.
    """

    project: Path = PROJECT
    python: str = sys.executable
    base_url: str | None = None
    management_key: str | None = None
    fresh: Path | None = None
    prepared: "Prepared | None" = None
    warm: bool = False


class SetupError(Exception):
    """The gateway did not start, or refused what a case needs before its first exchange."""


class Clock:
    """Real time plus an offset that the daemon reads from a file at every look; libfaketime does it for a process."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset_s = 0.0

    def set(self, moment: str, *, before_s: float = 0) -> None:
        self._move_to(datetime.fromisoformat(moment).timestamp() - before_s - time.time())

    def advance(self, seconds: float) -> None:
        self._move_to(self._offset_s + seconds)

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.time() + self._offset_s, UTC)

    def _move_to(self, offset_s: float) -> None:
        self._offset_s = offset_s
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{offset_s:+.3f}")
        fresh.replace(self._file)

    def environment(self, folder: Path, *, warm: bool) -> dict[str, str]:
        """What makes a process look there; a fork does so by itself."""
        if warm:
            from tests.support.warm import CLOCK

            return {CLOCK: str(self._file)}
        (folder / "site").mkdir(exist_ok=True)
        (folder / "site" / "sitecustomize.py").write_text(SITECUSTOMIZE)
        return {
            "LD_PRELOAD": FAKETIME_LIBRARY or "",
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
            "PYTHONPATH": os.pathsep.join(
                [str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
            ),
        }


class Gateway:
    """`gwd init` and `gwd serve` in a folder of their own; or a gateway that runs already."""

    def __init__(self, options: Options, fixture: Mapping[str, Any]) -> None:
        self._options = options
        self._fixture = fixture
        self._process: asyncio.subprocess.Process | WarmProcess | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.clock: Clock | None = None
        self.has_catalogue = False
        self.is_own = options.base_url is None
        self.last_words = ""
        self.management_key = options.management_key
        self.base_path = "/api/v1"

    async def start(self, vendors: "Vendors | None" = None) -> None:
        """Serve; from a prepared folder where there is one for these vendors."""
        if self._options.base_url is not None:
            match = re.fullmatch(r"http://([^:/]+):(\d+)(/.*?)/?", self._options.base_url)
            if not match:
                raise SetupError("--base-url must look like http://127.0.0.1:8080/api/v1")
            self.address, self.base_path = (match[1], int(match[2])), match[3]
            return
        self._folder = tempfile.TemporaryDirectory(prefix="case-", ignore_cleanup_errors=True)
        folder = Path(self._folder.name)
        self._data, self._log = folder / "gateway", folder / "log"
        self._environment = self._process_environment(folder)
        self.address = (HOST, free_port())
        if self._options.fresh is not None and self.clock is None:
            await self._copy(self._options.fresh, vendors)
            self.management_key = self._options.management_key
        else:
            self.management_key = (await self._init())["management_key"]
            allow_http(self._data / "gwd.toml")
        await self._serve()

    async def _copy(self, fresh: Path, vendors: "Vendors | None") -> None:
        if self._options.prepared is None or vendors is None:
            shutil.copytree(fresh, self._data)
            return
        from .prepared import move_to

        prepared = await self._options.prepared.folder(self._fixture, self._options)
        shutil.copytree(prepared or fresh, self._data)
        if prepared is not None:
            move_to(self._data, self._fixture, vendors)
            self.has_catalogue = True

    async def leave(self, folder: Path) -> None:
        """End the process and keep its node there."""
        await self._terminate()
        shutil.copytree(self._data, folder, ignore=shutil.ignore_patterns("*.lock"))

    async def restart(self) -> None:
        await self._terminate()
        await self._serve()

    async def stop(self) -> None:
        """End the process, keep the end of its output for a report, remove the folder."""
        await self._terminate()
        if self._folder is not None:
            lines = (
                self._log.read_text("utf-8", "replace").splitlines() if self._log.exists() else []
            )
            self.last_words = "\n".join(f"      | {cut(line, 200)}" for line in lines[-15:])
            self._folder.cleanup()

    def _process_environment(self, folder: Path) -> dict[str, str]:
        inherited = {
            k: v for k, v in os.environ.items() if not re.match(r"(GWD|GWCTL)_|.*_API_KEY$", k)
        }
        own = {
            "PYTHONUNBUFFERED": "1",
            "TZ": self._fixture.get("tz", "UTC"),
            **self._fixture.get("env", {}),
        }
        if "now" in self._fixture:
            self.clock = Clock(folder / "clock")
            moments = [
                self._fixture["now"],
                *(b["spent_at"] for b in self._fixture.get("budgets", [])),
            ]
            self.clock.set(min(moments, key=datetime.fromisoformat), before_s=SETUP_BEFORE_NOW_S)
            own |= self.clock.environment(folder, warm=self._options.warm)
        return inherited | own

    async def _spawn(
        self, *arguments: str | int | Path, stdout: Any, stderr: Any
    ) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(str(part) for part in (self._options.python, "-m", "gwd", *arguments)),
            cwd=self._options.project,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )

    async def _init(self) -> dict[str, Any]:
        if self._options.warm:
            from tests.support import warm

            words = ["init", "--dir", str(self._data), "--json"]
            made = await asyncio.to_thread(warm.run, "gwd", words, self._environment)
            return self._said(made.returncode, made.stdout, made.stderr)
        pipe = asyncio.subprocess.PIPE
        process = await self._spawn("init", "--dir", self._data, "--json", stdout=pipe, stderr=pipe)
        try:
            out, err = await asyncio.wait_for(process.communicate(), INIT_LIMIT_S)
        except TimeoutError:
            process.kill()
            raise SetupError(f"gwd init took longer than {INIT_LIMIT_S} s") from None
        said, complained = (stream.decode("utf-8", "replace") for stream in (out, err))
        return self._said(process.returncode, said, complained)

    def _said(self, code: int | None, out: str, err: str) -> dict[str, Any]:
        said = load_json_or_none(out)
        if code or not isinstance(said, dict) or "management_key" not in said:
            raise SetupError(f"gwd init: exit {code}: {cut((err or out)[-300:], 300)}")
        return said

    async def _serve(self) -> None:
        host, port = self.address
        command = ["serve", "--config", f"{self._data / 'gwd.toml'}", "--host", host]
        command += ["--port", str(port)]
        if self._options.warm:
            from tests.support.warm import WarmProcess

            self._process = WarmProcess(
                "gwd", command, self._environment, out=self._log, err=self._log
            )
        else:
            with self._log.open("ab") as log:
                self._process = await self._spawn(*command, stdout=log, stderr=log)
        until = time.monotonic() + START_LIMIT_S
        while (await send(self.address, "GET", "/readyz", {}, timeout_s=2)).status != 200:
            if self._process.returncode is not None:
                raise SetupError(f"gwd serve ended with exit {self._process.returncode}")
            if time.monotonic() > until:
                raise SetupError(f"/readyz did not answer 200 within {START_LIMIT_S} s")
            await asyncio.sleep(0.05)

    async def _terminate(self) -> None:
        if self._process is None or self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            await asyncio.wait_for(_ended(self._process), STOP_LIMIT_S)
        except TimeoutError:
            self._process.kill()
            await _ended(self._process)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # workers that outlived it


async def _ended(process: "asyncio.subprocess.Process | WarmProcess") -> None:
    if isinstance(process, asyncio.subprocess.Process):
        await process.wait()
    else:
        await asyncio.to_thread(process.wait)


def allow_http(config: Path) -> None:
    """The fake vendors speak plain HTTP on loopback: [upstream] allow_http = true."""
    text = config.read_text() if config.exists() else ""
    upstream = tomllib.loads(text).get("upstream")
    if upstream is None:
        text += "\n[upstream]\nallow_http = true\n"
    elif "allow_http" not in upstream:
        text = re.sub(r"(?m)^\s*\[upstream\].*$", r"\g<0>\nallow_http = true", text, count=1)
    else:
        text = re.sub(r"(?m)^(\s*allow_http\s*=\s*)false", r"\g<1>true", text, count=1)
    config.write_text(text)
