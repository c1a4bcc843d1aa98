"""Every case file, played from outside against a daemon of its own (`gwd serve`) and fake vendors.

Cases without a clock begin with a copy of a folder: one that `gwd init` made, or one with the catalogue in it that most
cases share. Their daemons are forks of one warm process.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cases.caserunner.files import load_cases
from tests.cases.caserunner.gateway import Options, allow_http
from tests.cases.caserunner.play import run_case
from tests.cases.caserunner.prepared import Prepared
from tests.support import warm

CASES = {f"{case['id']}-{case['slug']}": case for case in load_cases()}
SIDE_BY_SIDE = 3
CASE_LIMIT_S = 240


@pytest.fixture(scope="session")
def options(tmp_path_factory: pytest.TempPathFactory) -> Options:
    place = tmp_path_factory.mktemp("cases")
    fresh = place / "gateway"
    return Options(
        management_key=initialized(fresh), fresh=fresh, prepared=Prepared(place), warm=True
    )


def initialized(folder: Path) -> str:
    """`gwd init` in the folder; its management key."""
    done = warm.run("gwd", ["init", "--dir", str(folder), "--json"], os.environ)
    assert done.returncode == 0, done.stderr
    allow_http(folder / "gwd.toml")
    key: str = json.loads(done.stdout)["management_key"]
    return key


@pytest.mark.parametrize("name", CASES)
def test_case_holds(name: str, options: Options) -> None:
    result = asyncio.run(run_case(CASES[name], options))
    if result.verdict == "skipped":
        pytest.skip("; ".join(result.reasons))
    case: dict[str, Any] = result.case
    reported = "\n".join([case["title"], *result.reasons, result.last_words])
    assert result.verdict == "passed", reported
