"""The node's clock against a machine whose clock is moved: what is followed, what waits, and for how long."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwd.core.clock import US_PER_DAY, US_PER_S
from gwd.core.node_clock import FAR_US, LASTING_S, SMALL_US, NodeClock

HOUR_US = 3_600 * US_PER_S
MONTH_END_US = int(datetime(2026, 11, 30, 23, 59, 50, tzinfo=UTC).timestamp()) * US_PER_S
LASTING_US = int(LASTING_S * US_PER_S)


class Machine:
    """Two clocks that stand still until they are moved."""

    def __init__(self, wall_us: int = MONTH_END_US) -> None:
        self.wall_us = wall_us
        self.run_us = 1_000 * US_PER_S

    def now_us(self) -> int:
        return self.wall_us

    def monotonic_s(self) -> float:
        return self.run_us / US_PER_S

    def wait(self, us: int) -> None:
        self.wall_us += us
        self.run_us += us


# How far the clock jumps, whether the time follows at once, and whether credit does.
JUMPS = [
    (US_PER_S, True, True),
    (-US_PER_S, True, True),
    (SMALL_US, True, True),
    (SMALL_US + 1, True, False),
    (HOUR_US, True, False),
    (-HOUR_US, True, False),
    (US_PER_DAY, True, False),
    (-US_PER_DAY, True, False),
    (6 * US_PER_DAY, True, False),
    (FAR_US, True, False),
    (FAR_US + 1, False, False),
    (-FAR_US - 1, False, False),
    (31 * US_PER_DAY, False, False),
    (400 * US_PER_DAY, False, False),
    (-40 * US_PER_DAY, False, False),
    (-20_000 * US_PER_DAY, False, False),
]


def test_a_jump_is_followed_by_its_size_and_believed_after_an_hour() -> None:
    wrong: list[tuple[Any, ...]] = []
    for jump_us, time_follows, credit_follows in JUMPS:
        machine = Machine()
        clock = NodeClock(machine)
        before_us = machine.wall_us
        machine.wall_us += jump_us
        state = "ok" if credit_follows else "doubted" if time_follows else "held"
        expected = [
            (0, state, machine.wall_us if time_follows else before_us, credit_follows),
            (LASTING_US - 1, state, None, credit_follows),
            (1, "ok", None, True),
        ]
        for wait_us, wanted, now_us, due_follows in expected:
            clock.now_us()
            machine.wait(wait_us)
            found = clock.standing()
            follows = clock.due_us() == machine.wall_us
            if found.state != wanted or (now_us is not None and clock.now_us() != now_us):
                wrong.append((jump_us, wait_us, found))
            # A clock that went back is behind what was believed: credit waits for it.
            if follows != (due_follows or jump_us < 0):
                wrong.append((jump_us, wait_us, "due", clock.due_us(), machine.wall_us))
        if clock.now_us() != machine.wall_us:
            wrong.append((jump_us, "never believed"))
    assert wrong == []


def test_a_jump_that_is_taken_back_leaves_nothing() -> None:
    machine = Machine()
    clock = NodeClock(machine)
    for jump_us in (400 * US_PER_DAY, 6 * US_PER_DAY, HOUR_US, -HOUR_US, -40 * US_PER_DAY):
        machine.wall_us += jump_us
        assert clock.standing().state != "ok"
        machine.wait(LASTING_US // 2)
        assert clock.due_us() <= machine.wall_us - max(0, jump_us)
        machine.wall_us -= jump_us
        assert clock.standing().state == "ok"
        assert clock.now_us() == clock.due_us() == machine.wall_us


def test_a_clock_that_goes_on_jumping_is_not_believed() -> None:
    machine = Machine()
    clock = NodeClock(machine)
    right_us = machine.wall_us
    for days in range(400, 420):
        machine.wall_us = right_us + days * US_PER_DAY
        clock.now_us()
        machine.wait(LASTING_US - 1)
        right_us += LASTING_US - 1
        assert clock.standing().state == "held"
        assert clock.now_us() == clock.due_us() == right_us


def test_many_small_steps_are_a_great_one_for_credit() -> None:
    machine = Machine()
    clock = NodeClock(machine)
    before_us = machine.wall_us
    for _ in range(100):
        machine.wall_us += SMALL_US
        assert clock.now_us() == machine.wall_us
    assert clock.standing().state == "doubted"
    assert clock.due_us() == before_us + SMALL_US
    machine.wait(LASTING_US)
    assert clock.due_us() == machine.wall_us
    # A clock that drifts, and is put right now and then, is no cause for doubt.
    for _ in range(100):
        machine.wait(LASTING_US)
        machine.wall_us += SMALL_US
        assert clock.standing().state == "ok"


def test_the_operator_ends_every_doubt() -> None:
    machine = Machine()
    clock = NodeClock(machine)
    machine.wall_us += 400 * US_PER_DAY
    found = clock.standing()
    assert (found.left_s, found.machine_us) == (LASTING_S, machine.wall_us)
    clock.accept()
    assert clock.standing().state == "ok"
    assert clock.now_us() == clock.due_us() == machine.wall_us


# How far the clock stands from the last time that the node knew, and what is thought of it.
STARTS = [
    (0, "ok"),
    (-SMALL_US, "ok"),
    (-SMALL_US - 1, "doubted"),
    (-US_PER_DAY, "doubted"),
    (-FAR_US - 1, "held"),
    (-3_000 * US_PER_DAY, "held"),
    (6 * US_PER_DAY, "ok"),
    (FAR_US, "ok"),
    (FAR_US + 1, "held"),
    (400 * US_PER_DAY, "held"),
]


@pytest.mark.parametrize(("off_us", "state"), STARTS)
def test_a_start_is_judged_by_the_last_time_that_was_known(off_us: int, state: str) -> None:
    machine = Machine(MONTH_END_US + off_us)
    clock = NodeClock(machine, MONTH_END_US)
    found = clock.standing()
    assert found.state == state
    if state == "held":
        assert clock.now_us() == MONTH_END_US
    assert clock.due_us() <= min(machine.wall_us, clock.now_us())
    machine.wait(LASTING_US)
    assert clock.standing().state == "ok"
    assert clock.now_us() == clock.due_us() == machine.wall_us


def test_a_new_node_believes_the_clock_that_it_finds() -> None:
    clock = NodeClock(Machine(MONTH_END_US - 20_000 * US_PER_DAY))
    assert clock.standing().state == "ok"


STEPS = st.lists(
    st.tuples(
        st.sampled_from([0, *(jump for jump, _, _ in JUMPS)]),
        st.integers(0, 2 * LASTING_US),
    ),
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(steps=STEPS, off_us=st.sampled_from([off for off, _ in STARTS]))
def test_whatever_a_clock_does_credit_never_waits_for_ever_nor_goes_early(
    steps: list[tuple[int, int]], off_us: int
) -> None:
    machine = Machine(MONTH_END_US + off_us)
    clock = NodeClock(machine, MONTH_END_US)
    for jump_us, wait_us in steps:
        machine.wall_us += jump_us
        clock.now_us()
        machine.wait(wait_us)
        now_us, due_us, found = clock.now_us(), clock.due_us(), clock.standing()
        assert due_us <= min(now_us, machine.wall_us)
        assert (found.state == "ok") == (found.left_s is None)
        if found.left_s is not None:
            assert 0 < found.left_s <= LASTING_S
        if wait_us >= LASTING_US:
            assert now_us == due_us == machine.wall_us
    machine.wait(LASTING_US)
    assert clock.now_us() == clock.due_us() == machine.wall_us
