"""Signed reasoning kept for a day: whose it is, and when it goes."""

from gwd.replay.signatures import LIFE_US, MAX_BLOB, forget, load, old, save
from tests.support.store import NOW_US, connection

__all__ = ["connection"]

LATER_US = NOW_US + LIFE_US


def test_a_blob_belongs_to_one_organization_and_one_call(connection):
    save(connection, "org_1", {"call_1": b"a", "call_2": b"b"}, now_us=NOW_US)
    wanted = ["call_1", "call_1", "call_3"]
    assert load(connection, "org_1", wanted, now_us=LATER_US - 1) == {"call_1": b"a"}
    assert load(connection, "org_2", wanted, now_us=NOW_US) == {}
    assert load(connection, "org_1", wanted, now_us=LATER_US) == {}


def test_an_oversized_blob_is_not_kept(connection):
    save(connection, "org_1", {"call_1": bytes(MAX_BLOB + 1)}, now_us=NOW_US)
    assert load(connection, "org_1", ["call_1"], now_us=NOW_US) == {}


def test_what_was_saved_anew_since_it_was_found_old_is_kept(connection):
    save(connection, "org_1", {"call_1": b"a", "call_2": b"b"}, now_us=NOW_US)
    found = old(connection, now_us=LATER_US, at_most=9)
    assert found == [("org_1", "call_1"), ("org_1", "call_2")]
    save(connection, "org_1", {"call_2": b"c"}, now_us=LATER_US)
    forget(connection, found, now_us=LATER_US)
    assert load(connection, "org_1", ["call_1", "call_2"], now_us=LATER_US) == {"call_2": b"c"}
    assert old(connection, now_us=LATER_US, at_most=9) == []
