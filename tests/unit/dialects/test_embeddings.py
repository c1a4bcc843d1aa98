"""Embeddings: inputs checked, vectors as numbers or as base64 of float32."""

import base64
import struct
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.core.cost import Cost
from gwd.core.errors import InvalidRequest
from gwd.core.events import Completion, Embedded, Event, Finished, Settled, Started, collect
from gwd.core.request import Embed, Request
from gwd.core.usage import Usage
from gwd.dialects.base import Reply
from gwd.dialects.embeddings import DIALECT, MAX_INPUTS, base64_floats
from gwd.vendors.base import UndecodableError
from gwd.vendors.openai_embeddings import ADAPTER
from tests.golden import golden

REPLY = Reply(generation_id="gen-1", created_s=1, model="test/emb", vendor="Test")
floats = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=20)


def _parse(given: Any, **body: Any) -> Request:
    return DIALECT.parse(msgspec.json.encode({"model": "test/emb", "input": given, **body}), {})


@given(floats)
def test_base64_is_the_packed_little_endian_floats(vector: list[float]):
    data = base64.b64decode(base64_floats(vector))
    assert list(struct.unpack(f"<{len(vector)}f", data)) == vector


def test_numbers_beyond_float32_are_cut_and_not_an_error():
    assert base64_floats([1e300, -1e300]) == base64_floats(
        [3.4028234663852886e38, -3.4028234663852886e38]
    )


@pytest.mark.parametrize(
    ("given_input", "inputs"),
    [
        ("a", ("a",)),
        (["a", "b"], ("a", "b")),
        ([1, 2], ((1, 2),)),
        ([[1], [2, 3]], ((1,), (2, 3))),
        (["a"] * MAX_INPUTS, ("a",) * MAX_INPUTS),
    ],
)
def test_texts_and_tokens_are_taken(given_input: Any, inputs: tuple[Any, ...]):
    body = _parse(given_input).body
    assert isinstance(body, Embed)
    assert body.inputs == inputs


@pytest.mark.parametrize(
    ("given_input", "param"),
    [
        ("", "input"),
        ([], "input"),
        (None, "input"),
        (["a", ""], "input[1]"),
        ([[]], "input[0]"),
        ([1, "a"], "input"),
        (["a", 1], "input[1]"),
        ([[1, "a"]], "input[0]"),
        ([-1], "input"),
        ([True], "input[0]"),
        (["a"] * (MAX_INPUTS + 1), "input"),
        ({"text": "a"}, "input"),
    ],
)
def test_bad_inputs_are_named(given_input: Any, param: str):
    with pytest.raises(InvalidRequest) as caught:
        _parse(given_input)
    assert caught.value.param == param


@pytest.mark.parametrize(
    ("field", "value"),
    [("dimensions", 0), ("dimensions", "x"), ("encoding_format", "hex"), ("stream", True)],
)
def test_bad_options_are_named(field: str, value: object):
    with pytest.raises(InvalidRequest) as caught:
        _parse("a", **{field: value})
    assert caught.value.param == field


def _completion(*vectors: tuple[float, ...]) -> Completion:
    events: list[Event] = [Started(), Embedded(vectors), Finished("stop")]
    return collect(events)


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_vectors_come_in_the_order_of_the_inputs(encoding: str):
    request = _parse(["a", "b"], encoding_format=encoding, usage={"include": True})
    settled = Settled(Usage(input=4), Cost(prompt_nano=400, total_nano=400), None)
    renderer = DIALECT.renderer(request, REPLY)
    body = msgspec.json.decode(renderer.whole(_completion((0.5, 1.0), (-2.0,)), settled))
    expected: list[Any] = [[0.5, 1.0], [-2.0]]
    if encoding == "base64":
        expected = [base64_floats(vector) for vector in expected]
    assert [item["embedding"] for item in body["data"]] == expected
    assert [item["index"] for item in body["data"]] == [0, 1]
    assert body["usage"]["prompt_tokens"] == body["usage"]["total_tokens"] == 4
    assert body["usage"]["cost"] == 4e-7


def _decode(answer: object, inputs: int) -> list[Event]:
    request = _parse(["x"] * inputs)
    return ADAPTER.decode(msgspec.json.encode(answer), request, golden.target("openai_embeddings"))


def test_a_vendors_numbering_decides_the_order():
    items = [{"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1]}]
    assert _decode({"data": items}, 2)[1] == Embedded(((1.0,), (2.0,)))


def test_vectors_of_a_server_that_numbers_nothing_come_in_the_order_of_its_list():
    items = [{"embedding": [1]}, {"embedding": [2]}]
    assert _decode({"data": items}, 2)[1] == Embedded(((1.0,), (2.0,)))


def test_indices_that_are_not_those_of_the_inputs_fail_the_attempt():
    wrong = []
    for indices in ((0, 0), (1, 2), (-1, 0), (0, 2), (0, None), (None, 1), (0, 1e9), ("0", "0")):
        items = [{"index": index, "embedding": [1]} for index in indices]
        with suppress(UndecodableError):
            wrong.append((indices, _decode({"data": items}, 2)))
    assert wrong == []


@pytest.mark.parametrize(
    "answer",
    [
        {"data": []},
        {"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [2]}]},
        {"data": [{"embedding": "not base64!"}]},
        {"data": [{"embedding": "AAAA"}]},
        {"data": [{"embedding": ["x"]}]},
        {"choices": []},
        [],
    ],
)
def test_an_answer_without_the_right_vectors_is_undecodable(answer: object):
    with pytest.raises(UndecodableError):
        _decode(answer, 1)


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        ({"prompt_tokens": 5, "total_tokens": 5}, Usage(input=5)),
        ({"total_tokens": 5}, Usage(input=5)),
        ({"prompt_tokens": -1}, Usage(unknown=("input",), refused=True)),
        ({"prompt_tokens": 0}, Usage()),
        ({}, None),
        (None, None),
    ],
)
def test_only_input_tokens_are_counted(reported: object, usage: Usage | None):
    *_, finished = _decode({"data": [{"embedding": [1]}], "usage": reported}, 1)
    assert isinstance(finished, Finished)
    assert finished.usage == usage
