"""Every case file, played from outside against a daemon of its own (`gwd serve`) and fake vendors.

Cases run three at a time in a thread beside pytest, in the order in which pytest will ask for them; each test waits
for the verdict of its own case. Cases without a clock begin with a copy of one folder that `gwd init` made.
"""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from tests.cases.caserunner.files import load_cases
from tests.cases.caserunner.gateway import PROJECT, Options, allow_http
from tests.cases.caserunner.play import Result, run_case

CASES = {f"{case['id']}-{case['slug']}": case for case in load_cases()}
SIDE_BY_SIDE = 3
CASE_LIMIT_S = 240


class Stage:
    """Plays the cases and keeps their verdicts."""

    def __init__(self, names: list[str], options: Options) -> None:
        self._options = options
        self._verdicts: dict[str, Future[Result]] = {name: Future() for name in names}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="cases")

    def start(self) -> None:
        self._thread.start()

    def verdict(self, name: str) -> Result:
        return self._verdicts[name].result(timeout=CASE_LIMIT_S)

    def stop(self) -> None:
        """Cases that nobody asks for any more are not begun; the ones under way end their processes."""
        for verdict in self._verdicts.values():
            verdict.cancel()
        self._thread.join()

    def _run(self) -> None:
        self._loop.run_until_complete(self._play_all())
        self._loop.close()

    async def _play_all(self) -> None:
        waiting = iter(self._verdicts.items())

        async def play() -> None:
            for name, verdict in waiting:
                if verdict.set_running_or_notify_cancel():
                    try:
                        verdict.set_result(await run_case(CASES[name], self._options))
                    except Exception as error:  # noqa: BLE001 - the waiting test raises it
                        verdict.set_exception(error)

        await asyncio.gather(*(play() for _ in range(SIDE_BY_SIDE)))


@pytest.fixture(scope="session")
def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    chosen = [item for item in request.session.items if item.path == Path(__file__)]
    fresh = tmp_path_factory.mktemp("cases") / "gateway"
    key = initialized(fresh)
    made = Stage([_case_of(item) for item in chosen], Options(management_key=key, fresh=fresh))
    made.start()
    yield made
    made.stop()


def initialized(folder: Path) -> str:
    """`gwd init` in the folder; its management key."""
    command = [sys.executable, "-m", "gwd", "init", "--dir", str(folder), "--json"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    allow_http(folder / "gwd.toml")
    key: str = json.loads(done.stdout)["management_key"]
    return key


def _case_of(item: pytest.Item) -> str:
    name: str = item.callspec.params["name"]  # type: ignore[attr-defined]
    return name


@pytest.mark.parametrize("name", CASES)
def test_case_holds(name: str, stage: Stage) -> None:
    result = stage.verdict(name)
    if result.verdict == "skipped":
        pytest.skip("; ".join(result.reasons))
    case: dict[str, Any] = result.case
    told = "\n".join([case["title"], *result.reasons, result.last_words])
    assert result.verdict == "passed", told
