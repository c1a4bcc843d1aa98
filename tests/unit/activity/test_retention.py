"""Who asked, past its retention: a round goes on where the one before stopped, and passes nothing by."""

from gwd.activity import service as activity
from gwd.store.connection import Connection
from tests.support.money import ORGANIZATION
from tests.support.store import Seen, connection
from tests.unit.activity.test_lists import at, filled, write

__all__ = ["connection", "filled"]

ALL = 1_000


def look(connection: Connection, clean_before: int, *, at_most: int = ALL) -> activity.OldSenders:
    """What was created before the 30th second of 60, and is old by the test's retention."""
    return activity.old_senders(
        connection,
        ORGANIZATION,
        clean_before=clean_before,
        before_us=at(30),
        at_most=at_most,
    )


def test_next_round_reads_only_what_the_one_before_has_not_cleaned(filled: Connection) -> None:
    found = look(filled, 1)
    # Of the numbers 1 to 34: eight of a user, six of an application, one of both, and three that bear tags alone.
    assert len(found.generation_ids) == 16
    activity.forget_senders(filled, found.generation_ids)
    first_kept = filled.row(
        "SELECT rowid FROM generation WHERE id = ?", (f"gen-{ORGANIZATION}-35",)
    )
    assert (found.clean_before,) == first_kept
    assert look(filled, found.clean_before) == activity.OldSenders([], found.clean_before)
    seen = Seen(filled)
    look(seen, found.clean_before)  # type: ignore[arg-type]
    assert set(seen.plans) == {
        "SEARCH generation USING INDEX generation_by_organization (organization_id=? AND rowid>?)"
    }


def test_round_that_found_as_many_as_it_may_looks_again_from_its_beginning(
    filled: Connection,
) -> None:
    found = look(filled, 1, at_most=5)
    assert (len(found.generation_ids), found.clean_before) == (5, 1)
    activity.forget_senders(filled, found.generation_ids)
    assert len(look(filled, found.clean_before).generation_ids) == 11


def test_old_request_that_ended_late_is_not_passed_by(filled: Connection) -> None:
    found = look(filled, 1)
    activity.forget_senders(filled, found.generation_ids)
    late = write(filled, 90, user_tag="ada", created_at=at(1))
    assert look(filled, found.clean_before).generation_ids == [late]


def test_organization_whose_requests_are_all_old_is_not_read_again(filled: Connection) -> None:
    def look_at_all(clean_before: int) -> activity.OldSenders:
        return activity.old_senders(
            filled,
            ORGANIZATION,
            clean_before=clean_before,
            before_us=at(1_000),
            at_most=ALL,
        )

    found = look_at_all(1)
    activity.forget_senders(filled, found.generation_ids)
    last = filled.row(
        "SELECT MAX(rowid) FROM generation WHERE organization_id = ?", (ORGANIZATION,)
    )
    assert (found.clean_before,) == last
    late = write(filled, 90, user_tag="ada")
    assert look_at_all(found.clean_before).generation_ids == [late]
