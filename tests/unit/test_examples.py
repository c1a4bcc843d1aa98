"""The examples: request bodies parse in their dialect and name models of the shipped catalog; the unit is complete."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import msgspec
import pytest

from gwd.dialects import chat_completions, completions, embeddings, messages
from gwd.dialects.base import Dialect
from gwd.dialects.responses import dialect as responses
from gwd.settings import Timeouts

EXAMPLES = Path(__file__).parents[2] / "examples"
DIALECTS: dict[str, Dialect] = {
    "chat_completions": chat_completions.DIALECT,
    "messages": messages.DIALECT,
    "responses": responses.DIALECT,
    "completions": completions.DIALECT,
    "embeddings": embeddings.DIALECT,
}


@pytest.fixture(scope="module")
def models() -> dict[str, dict]:
    catalog = tomllib.loads((EXAMPLES / "catalog.toml").read_text())
    return {model["id"]: model for model in catalog["models"]}


def test_every_dialect_has_one_body():
    assert {path.stem for path in (EXAMPLES / "requests").glob("*.json")} == {
        *DIALECTS,
        "analytics_query",
    }


@pytest.mark.parametrize("name", DIALECTS)
def test_body_parses_and_names_models_of_the_catalog(name, models):
    request = DIALECTS[name].parse((EXAMPLES / "requests" / f"{name}.json").read_bytes(), {})
    assert request.dialect == DIALECTS[name].name
    for slug in request.models:
        assert slug in models, f"{slug} is not in examples/catalog.toml"


@pytest.mark.parametrize("name", DIALECTS)
def test_path_is_the_name_of_the_file(name):
    assert DIALECTS[name].path.strip("/").replace("/", "_") == name


@pytest.fixture(scope="module")
def unit() -> dict[str, list[str]]:
    lines = (EXAMPLES / "gwd.service").read_text().splitlines()
    pairs = [line.split("=", 1) for line in lines if "=" in line and not line.startswith("#")]
    found: dict[str, list[str]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def test_stopping_waits_longer_than_draining(unit):
    drain_s = msgspec.structs.asdict(Timeouts())["drain_s"]
    assert int(unit["TimeoutStopSec"][0]) > drain_s


def test_unit_hands_the_ring_over_as_the_credential_that_settings_look_for(unit):
    name, _, path = unit["LoadCredential"][0].partition(":")
    assert (name, path) == ("gwd-keyring", "/etc/gwd/keyring.json")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_finds_nothing_wrong_with_the_units_and_little_exposed(tmp_path):
    for name in ("gwd.service", "gwd.socket"):
        text = (EXAMPLES / name).read_text()
        # The programs are not installed here.
        text = re.sub(r"^ExecStart=.*", "ExecStart=/bin/true", text, flags=re.MULTILINE)
        (tmp_path / name).write_text(text)
    units = [tmp_path / "gwd.service", tmp_path / "gwd.socket"]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    shown = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20", units[0]],
        check=False,
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 0, shown.stdout.splitlines()[-1]
