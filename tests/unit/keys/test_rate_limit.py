"""The rate window: at most N admitted in any 60 seconds, exactly."""

from collections import deque

from hypothesis import given, settings
from hypothesis import strategies as st

from gwd.keys.rate_limit import Admitted, RateLimiter, Refused, count_tokens_bucket

STEPS = st.one_of(
    st.floats(0, 0.05),
    st.floats(0, 3),
    st.sampled_from([0.999, 1.0, 1.001, 59.0, 59.999, 60.0, 60.001, 61.0, 122.0]),
    st.floats(30, 90),
)


@settings(max_examples=200, deadline=None)
@given(
    limit=st.integers(1, 8),
    start=st.floats(0, 100),
    steps=st.lists(STEPS, min_size=1, max_size=120),
)
def test_never_more_than_the_limit_in_any_sixty_seconds(limit, start, steps):
    limiter, now = RateLimiter(), start
    admitted: deque[float] = deque()
    for step in steps:
        now += step
        while admitted and admitted[0] <= now - 60:
            admitted.popleft()
        answer = limiter.admit("family", limit, now)
        if isinstance(answer, Admitted):
            admitted.append(now)
            assert answer.remaining >= 0
        assert len(admitted) <= limit


@settings(max_examples=200, deadline=None)
@given(limit=st.integers(1, 8), steps=st.lists(STEPS, min_size=1, max_size=120))
def test_a_request_is_refused_only_if_the_limit_was_used_within_61_seconds(limit, steps):
    limiter, now = RateLimiter(), 0.0
    admitted: list[float] = []
    for step in steps:
        now += step
        answer = limiter.admit("family", limit, now)
        if isinstance(answer, Refused):
            assert sum(at > now - 61 for at in admitted) >= limit
            assert 1 <= answer.retry_after_s <= 60
        else:
            admitted.append(now)


@settings(max_examples=100, deadline=None)
@given(limit=st.integers(1, 8), steps=st.lists(STEPS, min_size=1, max_size=60))
def test_whoever_waits_as_told_is_admitted_in_the_end(limit, steps):
    limiter, now = RateLimiter(), 0.0
    for step in steps:
        now += step
        limiter.admit("family", limit, now)
    answer = limiter.admit("family", limit, now)
    waits = 0
    while isinstance(answer, Refused):
        now += answer.retry_after_s
        waits += 1
        answer = limiter.admit("family", limit, now)
    assert waits <= 2


def test_a_burst_at_the_edge_of_a_second_does_not_get_twice_the_limit():
    """Sixty counters would forget the burst of 0.99 at 60.0, less than a minute later."""
    limiter = RateLimiter()
    for _ in range(5):
        assert isinstance(limiter.admit("family", 5, 0.99), Admitted)
    assert isinstance(limiter.admit("family", 5, 60.0), Refused)
    assert isinstance(limiter.admit("family", 5, 61.0), Admitted)


def test_refused_requests_do_not_lengthen_the_window():
    limiter = RateLimiter()
    for _ in range(3):
        limiter.admit("family", 3, 10.0)
    for second in range(11, 71):
        assert isinstance(limiter.admit("family", 3, float(second)), Refused)
    assert limiter.admit("family", 3, 71.0) == Admitted(3, 2, 60)


def test_remaining_counts_down_and_reset_tells_when_it_grows_again():
    limiter = RateLimiter()
    assert limiter.admit("family", 3, 10.0) == Admitted(3, 2, 60)
    assert limiter.admit("family", 3, 40.0) == Admitted(3, 1, 31)
    assert limiter.admit("family", 3, 69.5) == Admitted(3, 0, 2)
    assert limiter.admit("family", 3, 70.5) == Refused(3, 1)


def test_families_and_token_counting_have_windows_of_their_own():
    limiter = RateLimiter()
    assert isinstance(limiter.admit("a", 1, 0.0), Admitted)
    assert isinstance(limiter.admit("a", 1, 0.0), Refused)
    assert isinstance(limiter.admit("b", 1, 0.0), Admitted)
    assert isinstance(limiter.admit(count_tokens_bucket("a"), 1, 0.0), Admitted)


def test_a_lowered_limit_holds_at_once():
    limiter = RateLimiter()
    for second in range(10):
        limiter.admit("family", 10, float(second))
    assert limiter.admit("family", 3, 10.0) == Refused(3, 58)


def test_after_a_restart_the_last_minute_still_counts():
    limiter = RateLimiter()
    limiter.seed([("a", 2, 1), ("a", 50, 2), ("b", 0, 1), ("a", 61, 9)], 5.0)
    assert isinstance(limiter.admit("a", 3, 5.0), Refused)
    assert limiter.admit("b", 3, 5.0) == Admitted(3, 1, 60)
    assert limiter.admit("a", 3, 16.0) == Admitted(3, 1, 48)


@settings(max_examples=100, deadline=None)
@given(
    limit=st.integers(1, 6),
    before=st.lists(st.floats(0, 70), max_size=12),
    steps=st.lists(STEPS, min_size=1, max_size=30),
)
def test_a_restart_never_opens_the_window_early(limit, before, steps):
    """`before` are the ages of what the earlier process admitted, seen from the start of this one."""
    limiter, now = RateLimiter(), 3.2
    limiter.seed([("family", int(age), 1) for age in before], now)
    events = [now - age for age in before]
    for step in steps:
        now += step
        if isinstance(limiter.admit("family", limit, now), Admitted):
            events.append(now)
            assert sum(now - 60 < at <= now for at in events) <= limit


def test_families_that_rest_cost_no_memory():
    limiter = RateLimiter()
    for number in range(5_000):
        limiter.admit(f"family {number}", 1, float(number))
    assert len(limiter._rings) < 1_200


def test_a_look_says_what_a_request_would_meet_and_counts_nothing():
    limiter = RateLimiter()
    for _ in range(3):
        assert limiter.look("a", 1, 0.0) is None
    assert limiter._rings == {}
    assert isinstance(limiter.admit("a", 1, 0.0), Admitted)
    looked = limiter.look("a", 1, 20.0)
    assert looked == limiter.admit("a", 1, 20.0)
    assert isinstance(looked, Refused)
    assert limiter.look("a", 1, 61.0) is None
    assert limiter.look("a", 2, 20.0) is None
