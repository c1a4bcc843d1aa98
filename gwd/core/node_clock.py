"""The time the node goes by: the machine's wall clock, as long as it agrees with the monotonic one.

A machine may wake up in another year: a dead battery, a time server that lies, a hand that slipped. What follows from
the time differs in what a mistake costs, so there are two readings of it:

* `now_us`, the time of records, windows, expiring keys and lifecycles, follows every step up to FAR_US; a greater one
  is put on hold as a whole, and time goes on from where it was.
* `due_us`, the time by which credit expires and history is dropped, follows steps up to SMALL_US only, and no more of
  them within LASTING_S than come to that. It is never later than `now_us` nor than the machine's clock.

A step on hold is believed once it has lasted for LASTING_S of monotonic time, or at once when the operator says so.
"""

from typing import Final, Literal

import msgspec

from gwd.core.clock import US_PER_DAY, US_PER_S, Clock

FAR_US: Final = 7 * US_PER_DAY
SMALL_US: Final = 300 * US_PER_S
LASTING_S: Final = 3_600.0
_FRESH_US: Final = US_PER_S
"""A wall clock that has gone on by no more than this since it was last judged is not judged anew."""

_LASTING_US: Final = int(LASTING_S * US_PER_S)

State = Literal["ok", "doubted", "held"]
STATES: Final[tuple[State, ...]] = ("ok", "doubted", "held")


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What is thought of the machine's clock: believed, doubted (credit waits) or held (everything waits).

    `since_us` and `until_us` are moments of the machine's clock; `left_s` is until it is believed by itself.
    """

    state: State
    machine_us: int
    used_us: int
    due_us: int
    since_us: int | None = None
    until_us: int | None = None
    left_s: int | None = None


class NodeClock:
    """One for the node. `last_us` is the last time the node knew before it was started, None for a new one."""

    def __init__(self, machine: Clock, last_us: int | None = None) -> None:
        self._wall_us = machine.now_us
        self.monotonic_s = machine.monotonic_s
        self._agreed_us = 0  # when both readings were last found to be the machine's time
        wall_us, run_us = self._look()
        start_us = (wall_us if last_us is None else last_us) - run_us
        self._used = _Hand(FAR_US, 0, start_us, run_us)
        self._due = _Hand(SMALL_US, _LASTING_US, start_us, run_us)
        # To have been off for some days is no reason for doubt; a clock behind what is written already is one.
        if last_us is not None and last_us <= wall_us <= last_us + FAR_US:
            self.accept()
        self.now_us()  # a doubt begins here

    def now_us(self) -> int:
        """Microseconds since 1970 UTC as the node believes them; may step back by less than FAR_US."""
        wall_us = self._wall_us()
        if 0 <= wall_us - self._agreed_us <= _FRESH_US:
            return wall_us
        return self._judge()[0]

    def due_us(self) -> int:
        """The time by which what cannot be undone may be done; never later than `now_us` or the machine's clock."""
        wall_us = self._wall_us()
        if 0 <= wall_us - self._agreed_us <= _FRESH_US:
            return wall_us
        return self._judge()[1]

    def accept(self) -> None:
        """The machine's clock is right as it is now."""
        wall_us, run_us = self._look()
        for hand in (self._used, self._due):
            hand.take(wall_us - run_us, run_us)

    def standing(self) -> Standing:
        """What is thought of the machine's clock, and for how long still."""
        wall_us, run_us = self._look()
        used_us, due_us = self._used.look(wall_us, run_us), self._due.look(wall_us, run_us)
        due_us = min(due_us, used_us, wall_us)
        known = Standing(state="ok", machine_us=wall_us, used_us=used_us, due_us=due_us)
        if self._used.since_us is not None:
            state, since_us = "held", self._used.since_us
        elif self._due.since_us is not None:
            state, since_us = "doubted", self._due.since_us
        else:
            return known
        waited_us = run_us - since_us
        left_us = _LASTING_US - waited_us
        return msgspec.structs.replace(
            known,
            state=state,
            since_us=wall_us - waited_us,
            until_us=wall_us + left_us,
            left_s=-(-left_us // US_PER_S),
        )

    def _judge(self) -> tuple[int, int]:
        """Both readings, by both of the machine's clocks."""
        wall_us, run_us = self._look()
        used_us, due_us = self._used.look(wall_us, run_us), self._due.look(wall_us, run_us)
        if used_us == due_us == wall_us:
            self._agreed_us = wall_us
        return used_us, min(due_us, used_us, wall_us)

    def _look(self) -> tuple[int, int]:
        """The wall clock and the monotonic one, in microseconds."""
        return self._wall_us(), round(self.monotonic_s() * US_PER_S)


class _Hand:
    """Wall time as monotonic time plus an offset; a step of the offset beyond the bound waits until it has lasted.

    Steps are measured from the offset that was believed `memory_us` ago, so that many small ones are a great one.
    """

    __slots__ = (
        "_bound_us",
        "_known_at_us",
        "_known_us",
        "_memory_us",
        "_offset_us",
        "_wanted_us",
        "since_us",
    )

    def __init__(self, bound_us: int, memory_us: int, offset_us: int, run_us: int) -> None:
        self._bound_us = bound_us
        self._memory_us = memory_us
        self._offset_us = self._known_us = offset_us
        self._known_at_us = run_us
        self._wanted_us = 0
        self.since_us: int | None = None

    def look(self, wall_us: int, run_us: int) -> int:
        """The time by this hand."""
        offset_us = wall_us - run_us
        if abs(offset_us - self._known_us) <= self._bound_us:
            if run_us - self._known_at_us >= self._memory_us:
                self._known_us, self._known_at_us = offset_us, run_us
            self._offset_us, self.since_us = offset_us, None
            return wall_us
        if self.since_us is None or abs(offset_us - self._wanted_us) > SMALL_US:
            self._wanted_us, self.since_us = offset_us, run_us
        elif run_us - self.since_us >= _LASTING_US:
            self.take(offset_us, run_us)
            return wall_us
        return run_us + self._offset_us

    def take(self, offset_us: int, run_us: int) -> None:
        """Believe this offset."""
        self._offset_us = self._known_us = offset_us
        self._known_at_us = run_us
        self.since_us = None
