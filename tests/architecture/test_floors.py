"""The architecture holds: floors, who may use which library, sizes, words, the example settings."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from gwd.vendors.formats import ADAPTERS, FORMATS

ROOT = Path(__file__).parents[2]

# A library is a decision of one place; elsewhere its use is an accident.
PLACES_OF_LIBRARIES = {
    "httptools": ("gwd/upstream/",),
    "httpx": ("gwd/outbound/", "gwd/node/demo_request.py", "gwctl/"),
    "sanic": ("gwd/api/", "gwd/demo/", "gwd/wiring.py", "gwd/page/mount.py"),
    "jinja2": ("gwd/page/render.py",),
    "markupsafe": ("gwd/page/charts.py", "gwd/page/formats.py"),
    "apsw": ("gwd/store/", "gwd/backups/", "gwd/node/", "gwd/api/doctor.py"),
    "opentelemetry": ("gwd/telemetry/",),
    "requests": ("gwd/telemetry/",),
    "typer": ("gwd/__main__.py", "gwctl/"),
    "tomllib": ("gwd/settings/", "gwd/node/price_book.py", "gwd/vendors/fault_words.py", "gwctl/"),
    "cryptography": ("gwd/credentials/", "gwd/core/certificate.py"),
}


def sources() -> Iterator[Path]:
    for folder in ("gwd", "gwctl", "tests", "tools"):
        yield from sorted((ROOT / folder).rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_every_import_goes_down():
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.parametrize("library", PLACES_OF_LIBRARIES)
def test_a_library_is_used_in_its_place_only(library):
    places = PLACES_OF_LIBRARIES[library]
    used = {
        path.relative_to(ROOT).as_posix()
        for path in sources()
        if path.is_relative_to(ROOT / "gwd") or path.is_relative_to(ROOT / "gwctl")
        for name in imports(path)
        if name.split(".")[0] == library
    }
    assert {path for path in used if not path.startswith(places)} == set()


def test_every_file_says_its_duty_in_its_first_line():
    silent = []
    for path in sources():
        text = path.read_text("utf-8")
        if text.strip() and not ast.get_docstring(ast.parse(text)):
            silent.append(path.relative_to(ROOT).as_posix())
    assert silent == []


def test_every_room_says_what_it_owns():
    inner = (ROOT / "gwd" / "pipeline").glob("*/__init__.py")
    for path in sorted([*(ROOT / "gwd").glob("*/__init__.py"), *inner]):
        said = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        missing = [word for word in ("Owns:", "Does not own:", "Speaks to:") if word not in said]
        assert missing == [], f"{path.parent.name} does not say {missing}"


def test_every_vendor_format_has_a_folder_of_one_shape_and_its_line():
    """`formats` holds every folder of `vendors`, and nothing else knows a format that is not in its folder."""
    folders = {path.parent.name for path in (ROOT / "gwd/vendors").glob("*/__init__.py")}
    assert folders == set(FORMATS)
    for adapter in ADAPTERS:
        folder = ROOT / "gwd/vendors" / adapter.format.name
        files = {path.name for path in folder.glob("*.py")}
        assert files >= {"__init__.py", "adapter.py", "build.py", "decode.py", "format.py"}
        said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""
        assert said.startswith(f"{adapter.format.name}: "), folder
        assert "Owns:" in said, folder


def map_of_rooms() -> str:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    return page.split("## The rooms", 1)[1].split("\n## ", 1)[0]


def test_the_map_has_every_room_and_no_other():
    rooms = sorted(path.parent.name for path in (ROOT / "gwd").glob("*/__init__.py"))
    assert sorted(re.findall(r"^  (\w+)/ ", map_of_rooms(), re.MULTILINE)) == rooms
    inner = sorted(path.parent.name for path in (ROOT / "gwd/pipeline").glob("*/__init__.py"))
    assert sorted(re.findall(r"^    (\w+)/ ", map_of_rooms(), re.MULTILINE)) == inner


@pytest.mark.parametrize(("container", "indent"), [("gwd", 2), ("gwd.pipeline", 4)])
def test_the_map_has_the_order_of_the_floors(container, indent):
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    [layers] = [c["layers"] for c in contracts if c.get("containers") == [container]]
    floor = {
        name.strip("() ").removesuffix(".py"): number
        for number, layer in enumerate(layers)
        for name in re.split(r"[|:]", layer)
    }
    names = re.findall(rf"^ {{{indent}}}(\w+)(?:/|\.py) ", map_of_rooms(), re.MULTILINE)
    floors = [floor[name] for name in names if name in floor]
    assert floors
    assert floors == sorted(floors)


@pytest.mark.parametrize("noun", [
    "dialect", "adapter", "vendor", "provider", "endpoint", "target", "request", "events", "completion",
    "generation", "attempt", "refusal", "fault", "lot", "entry", "reservation", "reserve", "settle",
    "release", "window", "period", "destination", "alert", "delivery", "receipt",
])  # fmt: skip
def test_the_word_list_explains_every_noun(noun):
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    table = page.split("## Words", 1)[1].split("\n## ", 1)[0]
    assert re.search(rf"\*\*[^|]*\b{noun}\b[^|]*\*\*", table), noun
