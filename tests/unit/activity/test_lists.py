"""The list of generations: each question is answered by one index, and a walk meets each row once."""

from typing import Any

import pytest

from gwd.activity import lists
from gwd.activity import service as activity
from gwd.activity.row import GenerationRow
from gwd.core.errors import InvalidValue
from gwd.store.connection import Connection
from tests.support.money import ORGANIZATION, open_organization
from tests.support.store import NOW_US, Seen, connection

__all__ = ["connection"]

SECOND_US = 1_000_000
OTHER = "org_other"


def write(
    connection: Connection, number: int, *, organization: str = ORGANIZATION, **fields: Any
) -> str:
    generation_id = f"gen-{organization}-{number}"
    at_us = NOW_US + number * SECOND_US
    activity.write(
        connection,
        GenerationRow(
            **{
                "id": generation_id,
                "organization_id": organization,
                "workspace_id": "ws_default",
                "key_id": f"key_{number % 3}",
                "family_id": "fam",
                "dialect": "chat",
                "model": f"demo/{number % 2}",
                "status": "failed" if number % 10 == 0 else "succeeded",
                "user_tag": "ada" if number % 4 == 0 else None,
                "title": "app" if number % 5 == 0 else None,
                "tags": '["nightly","eu"]' if number % 7 == 0 else None,
                "created_at": at_us - 5 * SECOND_US,
                "settled_at": at_us,
                **fields,
            }
        ),
    )
    return generation_id


@pytest.fixture
def filled(connection: Connection) -> Connection:
    """Two organizations whose generations were written in turns; ours has the numbers 1 to 60."""
    for name in (ORGANIZATION, OTHER):
        open_organization(connection, now_us=NOW_US, organization_id=name)
    for number in range(1, 61):
        write(connection, number)
        write(connection, number, organization=OTHER)
    return connection


def found(connection: Any, filters: dict[str, Any], **page: Any) -> tuple[list[int], int | None]:
    page = {"limit": 100, "offset": 0, **page}
    page_ = lists.list_(connection, ORGANIZATION, filters, **page)
    assert all(row.organization_id == ORGANIZATION for row in page_.rows)
    return [int(row.id.rpartition("-")[2]) for row in page_.rows], page_.total


def at(number: float) -> int:
    return NOW_US + int(number * SECOND_US)


def test_every_question_is_answered_by_an_index_that_fits(filled: Connection) -> None:
    """No table is read from end to end and no page is sorted, whatever the filters; several together included."""
    questions: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "generation_by_organization": ({}, {}),
        "generation_by_key": ({"key_id": "key_1"}, {}),
        "generation_by_model": ({"model": "demo/1"}, {}),
        "generation_by_status": ({"status": "failed", "model": "demo/0"}, {}),
        "generation_by_tags": ({"tag": "eu"}, {}),
        "generation_by_session": ({"session_id": "s-1", "model": "demo/0"}, {}),
        "generation_by_error": ({"error_code": "rate_limit_exceeded"}, {}),
        "generation_by_user": ({"user": "ada", "status": "succeeded"}, {}),
    }
    for index, (filters, page) in questions.items():
        for more in ({}, {"from": at(10), "to": at(50)}):
            for where in ({}, {"after": "gen-org_acme-40"}, {"before": "gen-org_acme-20"}):
                seen = Seen(filled)
                found(seen, {**filters, **more}, **page, **where)
                scans = [plan for plan in seen.plans if plan.startswith("SCAN")]
                scans = [plan for plan in scans if "(" not in plan and " VIRTUAL " not in plan]
                assert scans == [], (filters, more, where)
                assert [plan for plan in seen.plans if "TEMP B-TREE FOR ORDER BY" in plan] == []
                assert any(f"INDEX {index} " in plan for plan in seen.plans), (index, seen.plans)


def test_filters_and_times_find_what_a_plain_look_finds(filled: Connection) -> None:
    wrong = []
    tests: dict[str, Any] = {
        "key_id": ("key_1", lambda n: n % 3 == 1),
        "model": ("demo/0", lambda n: n % 2 == 0),
        "status": ("failed", lambda n: n % 10 == 0),
        "user": ("ada", lambda n: n % 4 == 0),
        "app": ("app", lambda n: n % 5 == 0),
        "tag": ("eu", lambda n: n % 7 == 0),
        "from": (at(17), lambda n: n >= 17),
        "to": (at(42), lambda n: n < 42),
    }
    names = list(tests)
    for bits in range(1 << len(names)):
        chosen = [name for place, name in enumerate(names) if bits >> place & 1]
        expected = [n for n in range(60, 0, -1) if all(tests[name][1](n) for name in chosen)]
        numbers, total = found(filled, {name: tests[name][0] for name in chosen})
        if (numbers, total) != (expected, len(expected)):
            wrong.append((chosen, numbers, total))
    assert wrong == []
    for more in ({}, {"key_id": "key_1"}, {"from": at(17), "to": at(42)}):
        expected = [
            n for n in range(60, 0, -1) if n % 10 and all(tests[name][1](n) for name in more)
        ]
        assert found(filled, {**more, "status": "succeeded"}) == (expected, len(expected))
    mine, total = found(filled, {"status": "failed"}, key_ids=["key_0", "key_1"])
    assert (mine, total) == ([n for n in range(60, 0, -10) if n % 3 in (0, 1)], 4)


def test_a_walk_meets_each_row_once_while_others_are_written(filled: Connection) -> None:
    """What ends meanwhile, even if it began long ago, is before the walk and is found from there."""
    seen: list[int] = []
    after = None
    written = 60
    while True:
        numbers, total = found(filled, {}, limit=7, **({"after": after} if after else {}))
        assert total is None if after else total == 60
        if not numbers:
            break
        seen += numbers
        after = f"gen-{ORGANIZATION}-{numbers[-1]}"
        written += 3
        for number in range(written - 2, written + 1):
            write(filled, number, created_at=at(-1_000))
    assert seen == list(range(60, 0, -1))
    newer: list[int] = []
    before = f"gen-{ORGANIZATION}-{seen[0]}"
    while page := found(filled, {}, limit=7, before=before)[0]:
        newer = page + newer
        before = f"gen-{ORGANIZATION}-{page[0]}"
    assert newer == list(range(written, 60, -1))


def test_a_long_look_ends_and_says_where_to_go_on(
    filled: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every fifth generation is of the app, and a page looks at ten."""
    monkeypatch.setattr(lists, "LOOKED", 9)
    questions: list[lists.Filters] = [{"app": "app"}, {"app": "app", "workspace_id": "ws_default"}]
    for filters in questions:
        seen, pages = [], 0
        place: dict[str, Any] = {}
        while True:
            page = lists.list_(filled, ORGANIZATION, filters, limit=50, offset=0, **place)
            assert page.total is None
            seen += [int(row.id.rpartition("-")[2]) for row in page.rows]
            pages += 1
            if page.reached is None:
                break
            place = {"after": page.reached}
        assert (seen, pages) == (list(range(60, 0, -5)), 7)
    newer, place = [], {"before": f"gen-{ORGANIZATION}-1"}
    while (
        page := lists.list_(filled, ORGANIZATION, {"app": "app"}, limit=50, offset=0, **place)
    ).reached:
        newer += [int(row.id.rpartition("-")[2]) for row in page.rows[::-1]]
        place = {"before": page.reached}
    newer += [int(row.id.rpartition("-")[2]) for row in page.rows[::-1]]
    assert newer == list(range(5, 61, 5))
    with pytest.raises(InvalidValue) as refused:
        lists.list_(filled, ORGANIZATION, {"app": "app"}, limit=50, offset=1)
    assert refused.value.param == "offset"


def test_more_than_can_be_counted_is_not_counted(
    filled: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "COUNTED", 20)
    assert found(filled, {}, limit=1) == ([60], None)
    assert found(filled, {"key_id": "key_1"}, limit=1) == ([58], 20)
    assert found(filled, {"from": at(41)}, limit=1) == ([60], 20)


def test_a_clock_that_was_set_back_puts_no_refusal_before_what_was_written(
    filled: Connection,
) -> None:
    """Refusals have ledger time, so that times are in the order of the rows and a stretch of them is found whole."""
    filled.execute(f"UPDATE account SET last_at = {at(60)}")
    for number in range(61, 71):
        write(filled, number, status="refused", settled_at=at(-90_000), created_at=at(-90_000))
    assert found(filled, {"from": at(60)})[0] == list(range(70, 59, -1))
    assert found(filled, {"to": at(60)})[0] == list(range(59, 0, -1))


@pytest.mark.parametrize("place", ["", "gen-nowhere", f"gen-{OTHER}-5", "5", "' OR 1=1 --"])
@pytest.mark.parametrize("side", ["after", "before"])
def test_a_place_of_another_list_is_refused(filled: Connection, side: str, place: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        found(filled, {}, **{side: place})
    assert refused.value.param == side
