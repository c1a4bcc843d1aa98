"""Too high for a while: what begins it, what ends it, and what does neither."""

import pytest

from gwd.core.pressure import Pressure


def verdicts(pressure: Pressure, values: list[float], gap_s: float = 0.25) -> list[bool]:
    found = []
    for number, value in enumerate(values):
        pressure.note(value, number * gap_s)
        found.append(pressure.is_high)
    return found


def lag() -> Pressure:
    return Pressure(above=0.25, below=0.125, begins_s=1.0, ends_s=0.5)


@pytest.mark.parametrize(
    ("values", "high"),
    [
        ([0.3] * 4, [False] * 4),
        ([0.3] * 5, [False] * 4 + [True]),
        ([0.3] * 4 + [0.25] + [0.3] * 4, [False] * 9),
        ([5.0], [False]),
        ([0.3] * 5 + [0.2] * 5, [False] * 4 + [True] * 6),
        ([0.3] * 5 + [0.1, 0.1, 0.2, 0.1, 0.1, 0.1], [False] * 4 + [True] * 6 + [False]),
        ([0.3] * 5 + [0.0] * 3 + [0.3] * 4, [False] * 4 + [True] * 3 + [False] * 5),
    ],
    ids=[
        "not long enough",
        "long enough",
        "one that was at the mark begins anew",
        "once, however high",
        "between the marks nothing changes",
        "it ends when all was low for long",
        "and then begins anew",
    ],
)
def test_all_of_a_while_has_to_speak_for_a_change(values: list[float], high: list[bool]) -> None:
    assert verdicts(lag(), values) == high


def test_without_times_one_value_decides_and_the_marks_keep_it_from_flapping() -> None:
    memory = Pressure(above=0.85, below=0.80, begins_s=0.0, ends_s=0.0)
    found = verdicts(memory, [0.85, 0.86, 0.84, 0.81, 0.80, 0.84, 0.86])
    assert found == [False, True, True, True, False, False, True]


def test_only_changes_are_told() -> None:
    memory = Pressure(above=0.85, below=0.80, begins_s=0.0, ends_s=0.0)
    assert [memory.note(value, 0.0) for value in (0.9, 0.9, 0.7, 0.7)] == [True, False, True, False]
