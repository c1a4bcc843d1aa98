"""A gateway that is broken in one place: `python -m tests.faults.broken NAME` runs the test that has to see it.

Each breakage takes away the guard on which a promise rests; the test that proves the promise has to fail then.
"""

import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final

import msgspec
import pytest

from gwd.alerts import catalog_alerts, queue, service
from gwd.alerts.queue import Outcome
from gwd.api.http_guard import GuardedProtocol
from gwd.ledger.account import StoredAccount
from gwd.pipeline.dispatch.incoming import Incoming
from gwd.store import database
from gwd.store.ballast import Ballast
from gwd.store.database import Store
from gwd.wiring import RunningNode


class Breakage(msgspec.Struct, frozen=True):
    """What is broken, by a sentence; whose proof has to see it; what is put in whose place."""

    promise: str
    test: str
    places: tuple[tuple[Any, str, Any], ...]
    hang_s: float = 120
    """A test that still waits after so long has failed as well."""


def _constant(value: Any) -> Callable[..., Any]:
    def constant(*_: Any, **__: Any) -> Any:
        return value

    return constant


async def _nothing(*_: Any, **__: Any) -> int:
    return 0


async def _note_first(job: Any, message: Any) -> bool:
    """As DeliveryJob._attempt, in the wrong order."""
    told = Outcome(error=None)
    await job._store.write(
        queue.note, message, told, jitter=0.0, app_url="", now_us=job._clock.now_us()
    )
    await job._sender.send(message)
    return True


BREAKAGES: Final[dict[str, Breakage]] = {
    "a strict key does not count what is held": Breakage(
        "P4",
        "tests/limits/test_key_limits.py::"
        "test_a_strict_key_counts_what_running_requests_hold_and_what_this_one_may_cost",
        (("gwd.keys.admission", "strict_room_nano", _constant(None)),),
    ),
    "a minute has sixty counters": Breakage(
        "P5",
        "tests/unit/keys/test_rate_limit.py::"
        "test_a_burst_at_the_edge_of_a_second_does_not_get_twice_the_limit",
        (("gwd.keys.rate_limit", "SLOTS", 60),),
    ),
    "nobody sweeps": Breakage(
        "P6",
        "tests/flows/test_stop_and_start.py::test_hold_that_nothing_owns_is_swept_while_the_node_runs",
        (("gwd.pipeline.settle.recovery", "sweep", _nothing),),
    ),
    "it writes on after an error of the disk": Breakage(
        "P7",
        "tests/flows/test_storage.py::test_after_an_io_error_nothing_is_written_any_more",
        (
            (
                Store,
                "_fail",
                lambda self, jobs, cause: [
                    (j[3], None, database._unavailable(cause)) for j in jobs
                ],
            ),
        ),
    ),
    "the reserve is kept on a full disk": Breakage(
        "P8",
        "tests/faults/test_disk_full.py::test_writes_on_a_full_disk_happen_after_the_reserve_is_given_up",
        ((Ballast, "drop", _constant(False)),),
    ),
    "a lock reaches the caller as it is": Breakage(
        "P9",
        "tests/flows/test_storage.py::test_locked_file_fails_the_whole_batch_after_one_wait",
        (("gwd.store.database", "_unavailable", lambda cause: cause),),
    ),
    "the ledger goes back with the clock": Breakage(
        "P10",
        "tests/unit/ledger/test_service.py::test_ledger_time_never_goes_back",
        ((StoredAccount, "time_us", lambda self, now_us: now_us),),
    ),
    "a stop does not wait": Breakage(
        "P11",
        "tests/flows/test_stop_and_start.py::test_running_answers_may_finish_before_the_node_stops",
        ((RunningNode, "_drain", _nothing),),
    ),
    "what was cut off counts as whole": Breakage(
        "P13",
        "tests/faults/test_within_output.py::"
        "test_broken_stream_is_billed_for_what_was_received[chat-cut off cleanly]",
        ((Incoming, "ended", property(lambda self: True, lambda self, value: None)),),
    ),
    "what a vendor quotes is passed on": Breakage(
        "P14",
        "tests/faults/test_quoted_secrets.py::"
        "test_no_client_record_or_probe_sees_what_a_vendor_quotes[whole-in the message]",
        (
            ("gwd.pipeline.dispatch.attempt", "without_secrets", lambda fault, target: fault),
            ("gwd.pipeline.dispatch.attempt", "body_without_secrets", lambda body, target: body),
            ("gwd.pipeline.dispatch.dispatch", "without_secrets", lambda fault, target: fault),
            ("gwd.pipeline.dispatch.dispatch", "body_without_secrets", lambda body, target: body),
        ),
    ),
    "only private addresses are inner ones": Breakage(
        "P16",
        "tests/unit/outbound/test_guard.py::test_no_spelling_of_an_inner_address_is_let_out",
        (
            (
                "gwd.outbound.guard",
                "allowed",
                lambda address, port, rules: not address.is_private,
            ),
        ),
    ),
    "heads are read as the framework reads them": Breakage(
        "P17",
        "tests/faults/test_http_front.py::"
        "test_what_can_be_read_in_two_ways_is_refused_and_the_connection_closed",
        (("gwd.api.http_guard", "check_head", _constant(None)),),
    ),
    "a head may take its time": Breakage(
        "P18",
        "tests/faults/test_http_front.py::test_a_connection_on_which_nothing_is_said_is_closed",
        ((GuardedProtocol, "arm_head_timer", _constant(None)),),
        hang_s=8,
    ),
    "any number of elements is read": Breakage(
        "P19",
        "tests/unit/dialects/test_json_input.py::"
        "test_a_body_of_endless_small_elements_is_refused_before_it_is_read",
        (("gwd.dialects.json_input", "has_too_many_elements", _constant(False)),),
    ),
    "an attempt counts before it is made": Breakage(
        "P20",
        "tests/flows/test_deliveries.py::"
        "test_what_was_in_flight_when_the_node_died_is_sent_again_with_the_same_ids",
        (("gwd.jobs.deliveries.DeliveryJob", "_attempt", _note_first),),
    ),
    "a cause speaks each time": Breakage(
        "P20",
        "tests/unit/alerts/test_service.py::test_a_mark_lets_a_cause_speak_once_and_only_louder_again",
        ((service, "mark_once", _constant(True)), (catalog_alerts, "mark_once", _constant(True))),
    ),
    "the steps of an upgrade are no transactions": Breakage(
        "P22",
        "tests/flows/test_upgrade.py::test_killed_anywhere_an_upgrade_is_finished_by_the_next[01-first]",
        (("gwd.store.migrations", "transaction", lambda connection, mode: nullcontext()),),
    ),
    "a directory has any number of nodes": Breakage(
        "P24",
        "tests/flows/test_stop_and_start.py::test_second_instance_is_refused_while_the_first_serves",
        (("gwd.store.lock.fcntl", "flock", _constant(None)),),
    ),
}


def main() -> int:
    """pytest's own exit code: 1 when the test has seen it."""
    breakage = BREAKAGES[sys.argv[1]]
    patch = pytest.MonkeyPatch()
    for place, name, value in breakage.places:
        if isinstance(place, str):
            patch.setattr(f"{place}.{name}", value)
        else:
            patch.setattr(place, name, value, raising=False)
    words = [
        "-n",
        "0",
        "-x",
        "-q",
        "--no-header",
        "-p",
        "no:cacheprovider",
        "--timeout",
        str(breakage.hang_s),
    ]
    words += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # a fork has imported everything
    return int(pytest.main([*words, breakage.test]))


if __name__ == "__main__":
    raise SystemExit(main())
