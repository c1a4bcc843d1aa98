"""gwctl model lifecycle: what is coming, and which of one's keys it meets."""

import json
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.gateway import FakeGateway

PLACE = "/catalog/lifecycle"
COMING: list[dict[str, Any]] = [
    {
        "at": "2026-12-01T00:00:00Z",
        "kind": "deprecation",
        "model": "acme/fast-1",
        "successor": "acme/fast-2",
    },
    {
        "at": "2026-12-10T00:00:00Z",
        "kind": "price_change",
        "model": "acme/large",
        "old": {"prompt": "2", "completion": "8"},
        "new": {"prompt": "2", "completion": "10"},
    },
    {
        "at": "2027-01-01T00:00:00Z",
        "kind": "retirement",
        "model": "acme/fast-1",
        "successor": "acme/fast-2",
        "forwards_to": "acme/fast-2",
        "requests_last_30d": 1_204,
        "spend_last_30d": 6.5,
        "keys": [
            {"id": "key_1", "name": "ci", "requests": 1_200, "may_use_successor": False},
            {"id": "key_2", "name": "web", "requests": 4, "may_use_successor": True},
        ],
    },
    {"at": "2027-02-01T00:00:00Z", "kind": "retirement", "model": "acme/old", "keys": []},
]


@pytest.fixture
def node(gateway: FakeGateway) -> FakeGateway:
    gateway.on("GET", PLACE, {"data": COMING, "total_count": len(COMING)})
    return gateway


def test_each_event_says_what_follows(run: Run, node: FakeGateway) -> None:
    lines = [line.split("\t") for line in run("model", "lifecycle").out.splitlines()]
    assert [line[1:4] for line in lines] == [
        ["deprecation", "acme/fast-1", "successor acme/fast-2"],
        ["price_change", "acme/large", "completion $8 -> $10"],
        ["retirement", "acme/fast-1", "forwarded to acme/fast-2"],
        ["retirement", "acme/old", "fails with 404"],
    ]
    assert lines[2][4:] == ["ci, web", "1204", "6.5", "may not use acme/fast-2: ci"]
    assert [line[7] for line in lines] == ["", "", "may not use acme/fast-2: ci", ""]


def test_one_model_a_few_and_json(run: Run, node: FakeGateway) -> None:
    assert len(run("model", "lifecycle", "--model", "acme/fast-1").out.splitlines()) == 2
    code, out, err = run("model", "lifecycle", "--limit", "1")
    assert (code, len(out.splitlines())) == (0, 1)
    assert "1 of 4 shown" in err
    rows = json.loads(run("model", "lifecycle", "--json", "at,kind,model").out)
    assert rows[3] == {
        "at": "2027-02-01T00:00:00Z",
        "kind": "retirement",
        "model": "acme/old",
    }
    node.on("GET", PLACE, {"data": [], "total_count": 0})
    assert run("model", "lifecycle").out == ""
