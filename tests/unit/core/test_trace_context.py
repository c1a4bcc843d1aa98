"""The header `traceparent`: what is taken over, what counts as not sent, which share is kept, what vendors are told."""

import pytest

from gwd.core.trace_context import Tracing

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
ALL = Tracing(sample_ratio=1.0, is_sent=True)
NONE = Tracing(sample_ratio=0.0, is_sent=False)


@pytest.mark.parametrize(
    ("header", "is_sampled"),
    [
        (f"00-{TRACE}-{SPAN}-01", True),
        (f"00-{TRACE}-{SPAN}-00", False),
        (f"00-{TRACE}-{SPAN}-03", True),
        (f"cc-{TRACE}-{SPAN}-01-what-comes-later", True),
    ],
)
def test_a_clients_trace_is_taken_over_and_kept_as_it_says(header: str, is_sampled: bool) -> None:
    for tracing in (ALL, NONE):
        trace = tracing.begin(header)
        assert (f"{trace.trace_id:032x}", f"{trace.parent_id:016x}") == (TRACE, SPAN)
        assert trace.is_sampled is is_sampled
        assert trace.span_id != trace.parent_id


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "x",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-01\n",
    ],
)
def test_what_is_no_header_begins_a_trace_of_its_own(header: str | None) -> None:
    assert ALL.begin(header).is_sampled
    trace = NONE.begin(header)
    assert (trace.parent_id, trace.is_sampled) == (None, False)
    assert f"{trace.trace_id:032x}" != TRACE


def test_a_share_of_them_is_kept() -> None:
    half = Tracing(sample_ratio=0.5, is_sent=False)
    kept = sum(half.begin(None).is_sampled for _ in range(4_000))
    assert 1_700 < kept < 2_300


def test_each_call_has_a_span_of_its_own_and_the_header_names_it() -> None:
    trace = ALL.begin(f"00-{TRACE}-{SPAN}-01")
    ids = [trace.attempt_id(number) for number in range(1, 7)]
    assert len({trace.span_id, *ids}) == 7
    assert all(0 < each < 2**64 for each in ids)
    assert trace.header(2) == f"00-{TRACE}-{ids[1]:016x}-01"
    assert NONE.begin(None).header(1).endswith("-00")
