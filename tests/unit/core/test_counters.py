"""The last minute: sixty seconds of the monotonic clock, and nothing older."""

from gwd.core.counters import Counters, LastMinute, Pace


def test_what_is_older_than_a_minute_is_forgotten() -> None:
    minute = LastMinute()
    minute.at(100.2).requests += 1
    minute.at(100.9).tokens_prompt += 7
    minute.at(159.9).requests += 2
    assert minute.pace(159.9) == Pace(requests=3, tokens_prompt=7)
    assert minute.pace(160.0) == Pace(requests=2)
    assert minute.pace(10_000.0) == Pace()


def test_it_holds_no_more_seconds_than_a_minute_has() -> None:
    minute = LastMinute()
    for second in range(1_000):
        minute.at(second).charged_nano += 1
    assert minute.pace(999.0).charged_nano == len(minute._seconds) == 60


def test_a_refusal_is_counted_by_code_and_for_the_minute() -> None:
    counters = Counters()
    counters.refuse("invalid_json", 5.0)
    assert counters.refusals == {"invalid_json": 1}
    assert counters.last_minute.pace(5.0) == Pace(refusals=1)
