"""The part of jq that --jq understands."""

from decimal import Decimal
from typing import Any

import pytest

from gwctl import jq
from gwctl.errors import CommandError

RECORDS: list[dict[str, Any]] = [
    {"id": "a", "cost": 1, "tags": ["x", "y", "z"], "inner": {"deep": {"er": 7}}},
    {"id": "b", "cost": Decimal("2.50"), "tags": None, "inner": None},
]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (".", [RECORDS]),
        (".[].id", ["a", "b"]),
        (".[0]", [RECORDS[0]]),
        (".[-1].id", ["b"]),
        (".[0].inner.deep.er", [7]),
        ('.[0]["id"]', ["a"]),
        ('.[0]."id"', ["a"]),
        (".[0].tags[1:]", [["y", "z"]]),
        (".[0].tags[:1]", [["x"]]),
        (".[].tags[]?", ["x", "y", "z"]),
        (".[1].inner.deep", [None]),
        ('.[1].tags // "none"', ["none"]),
        ("length", [2]),
        (".[0].tags | length", [3]),
        ('.[] | select(.id == "b") | .cost', [Decimal("2.50")]),
        (".[] | select(.cost == 2.5).id", ["b"]),
        ('.[] | select(.id != "b" and .cost < 2) | .id', ["a"]),
        ('.[] | select(.id | startswith("a")) | .id', ["a"]),
        ("map(.cost) | add", [Decimal("3.50")]),
        ("[.[] | .cost * 2]", [[2, Decimal("5.00")]]),
        (".[0] | {id, twice: (.cost + .cost)}", [{"id": "a", "twice": 2}]),
        (".[0] | .id, .cost", ["a", 1]),
        ('[.[].id] | join(", ")', ["a, b"]),
        ("map(select(.tags)) | length", [1]),
        ("sort_by(.cost) | reverse | .[0].id", ["b"]),
        (".[0] | keys", [["cost", "id", "inner", "tags"]]),
        ('.[0] | has("id")', [True]),
        ("[] | first", [None]),
        (".[0].cost == true", [False]),
    ],
)
def test_expressions(expression: str, expected: list[Any]) -> None:
    assert jq.run(expression, RECORDS) == expected


@pytest.mark.parametrize("expression", [".[", ".a |", "foo(1)", ".x y", "{a:}", "@base64"])
def test_what_it_does_not_know_is_refused(expression: str) -> None:
    with pytest.raises(CommandError) as refused:
        jq.run(expression, RECORDS)
    assert refused.value.exit_code == 2


def test_a_wrong_kind_of_value_is_an_error_and_not_a_crash() -> None:
    with pytest.raises(CommandError, match="cannot take"):
        jq.run(".[0].id.x", RECORDS)
    with pytest.raises(CommandError, match="division by zero"):
        jq.run(".[0].cost / 0", RECORDS)
