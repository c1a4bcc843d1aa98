"""First replies by Idempotency-Key: given again to the same request, 409 idempotency_conflict for another one."""

import pytest

from gwd.core.errors import IdempotencyConflict, InvalidValue
from gwd.replay.idempotency import FirstReply, begin, claim, finish, forget, old
from tests.support.store import NOW_US, connection

__all__ = ["connection"]

DAY_US = 86_400_000_000


def used(name="n1", key_id="mk_1", method="POST", path="/keys", body=b"{}"):
    return claim(key_id=key_id, name=name, method=method, path=path, body=body)


def test_the_same_request_gets_the_first_reply_for_24_hours(connection):
    assert begin(connection, used(), now_us=NOW_US) is None
    finish(connection, used(), status=201, body=b'{"data":1}', now_us=NOW_US)
    first = FirstReply(status=201, body=b'{"data":1}')
    assert begin(connection, used(), now_us=NOW_US) == first
    assert begin(connection, used(), now_us=NOW_US + DAY_US - 1) == first
    assert begin(connection, used(), now_us=NOW_US + DAY_US) is None


@pytest.mark.parametrize(
    "other", [{"body": b"{ }"}, {"path": "/keys/key_1/rotate"}, {"method": "PUT"}]
)
def test_another_request_with_the_same_name_is_a_conflict(connection, other):
    finish(connection, used(), status=201, body=b"", now_us=NOW_US)
    with pytest.raises(IdempotencyConflict):
        begin(connection, used(**other), now_us=NOW_US)


def test_names_of_one_api_key_are_unknown_to_another(connection):
    finish(connection, used(), status=201, body=b"", now_us=NOW_US)
    assert begin(connection, used(key_id="mk_2"), now_us=NOW_US) is None


def test_a_name_is_free_again_after_24_hours(connection):
    finish(connection, used(), status=201, body=b"old", now_us=NOW_US)
    later = NOW_US + DAY_US
    assert begin(connection, used(body=b"new"), now_us=later) is None
    finish(connection, used(body=b"new"), status=200, body=b"new", now_us=later)
    again = begin(connection, used(body=b"new"), now_us=later + 1)
    assert again == FirstReply(status=200, body=b"new")


@pytest.mark.parametrize("name", ["", "x" * 256, "a\nb"])
def test_an_unusable_name_is_refused(name):
    with pytest.raises(InvalidValue):
        used(name=name)


def test_old_replies_are_forgotten_a_few_at_a_time(connection):
    for number in range(5):
        finish(connection, used(name=f"n{number}"), status=200, body=b"", now_us=NOW_US)
    finish(connection, used(name="young"), status=200, body=b"", now_us=NOW_US + 1)
    now_us = NOW_US + DAY_US
    few = old(connection, now_us=now_us, at_most=3)
    assert len(few) == 3
    forget(connection, few, now_us=now_us)
    assert len(old(connection, now_us=now_us, at_most=3)) == 2


def test_a_reply_made_anew_since_it_was_found_old_is_kept(connection):
    now_us = NOW_US + DAY_US
    finish(connection, used(), status=200, body=b"first", now_us=NOW_US)
    found = old(connection, now_us=now_us, at_most=9)
    finish(connection, used(), status=200, body=b"second", now_us=now_us)
    forget(connection, found, now_us=now_us)
    assert begin(connection, used(), now_us=now_us) == FirstReply(status=200, body=b"second")
