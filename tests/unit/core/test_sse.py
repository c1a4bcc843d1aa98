"""SSE is split as bytes by the standard, and framed so that no client breaks on it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.core import sse
from gwd.core.sse import Frame, SseSplitter

texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\x00"), max_size=30
)
line_ends = st.sampled_from((b"\n", b"\r\n", b"\r"))


def _split(data: bytes, size: int) -> list[Frame]:
    splitter = SseSplitter()
    frames: list[Frame] = []
    for start in range(0, len(data), size):
        frames += splitter.feed(data[start : start + size])
    return frames + splitter.close()


@given(
    st.lists(
        st.tuples(st.sampled_from(("", "delta", "error")), st.lists(texts, min_size=1, max_size=3)),
        max_size=5,
    ),
    line_ends,
    st.integers(min_value=1, max_value=9),
)
def test_frames_survive_any_cut_and_any_line_end(
    events: list[tuple[str, list[str]]], end: bytes, size: int
):
    wire, expected = b"", []
    for name, lines in events:
        if name:
            wire += b"event: " + name.encode() + end
        for line in lines:
            wire += b"data: " + line.encode() + end
        wire += end
        expected.append(Frame(name.encode(), "\n".join(lines).encode()))
    assert _split(wire, size) == expected
    assert _split(wire, len(wire) or 1) == expected


@given(st.binary(max_size=300), st.integers(min_value=1, max_value=7))
def test_any_bytes_give_the_same_frames_however_they_are_cut(data: bytes, size: int):
    assert _split(data, size) == _split(data, max(len(data), 1))


def test_comments_ids_and_unknown_fields_are_ignored():
    wire = b": WORKING\n\nid: 1\nretry: 5\nodd\ndata:x\n\n"
    assert _split(wire, 100) == [Frame(b"", b"x")]


def test_a_byte_order_mark_is_skipped_and_the_last_blank_line_may_be_missing():
    assert _split(b"\xef\xbb\xbfdata: x", 2) == [Frame(b"", b"x")]


def test_only_one_space_after_the_colon_is_removed():
    assert _split(b"data:  x\n\n", 50) == [Frame(b"", b" x")]


def test_data_is_not_split_at_unicode_line_separators():
    wire = "data: a\u2028b\u2029c\u0085d\n\n".encode()
    assert _split(wire, 1) == [Frame(b"", "a\u2028b\u2029c\u0085d".encode())]


def test_an_endless_line_is_refused():
    splitter = SseSplitter()
    with pytest.raises(sse.SseError):
        splitter.feed(b"data: " + b"x" * (sse.MAX_LINE_BYTES + 1))


def test_an_endless_event_is_refused():
    splitter = SseSplitter()
    line = b"data: " + b"x" * 900_000 + b"\n"
    for _ in range(4):
        splitter.feed(line)
    with pytest.raises(sse.SseError):
        splitter.feed(line)


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3))
def test_safe_frames_hold_no_separators_and_mean_the_same(value: dict[str, str]):
    frame = sse.safe(sse.data_frame(value))
    text = frame.decode()
    assert not set(text) & {"\u2028", "\u2029", "\u0085"}
    assert len(text.splitlines()) == 2
    (split,) = _split(frame, 3)
    assert msgspec.json.decode(split.data) == value


def test_a_named_frame_carries_its_name():
    assert sse.named_frame("ping", {"a": 1}) == b'event: ping\ndata: {"a":1}\n\n'
