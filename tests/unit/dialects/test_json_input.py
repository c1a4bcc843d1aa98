"""The front door of every inference body: a value, or a 400 that names the field; never anything else."""

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.core.errors import InvalidJson, InvalidRequest, InvalidValue, MissingParameter
from gwd.dialects import json_input


class Inner(msgspec.Struct):
    text: str


class Body(msgspec.Struct):
    model: str
    count: int | None = None
    inner: list[Inner] | None = None


def test_a_byte_order_mark_is_harmless():
    assert json_input.load(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


def test_a_nul_and_other_control_characters_in_text_are_kept():
    assert json_input.load(b'{"a": "x\\u0000y"}') == {"a": "x\0y"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": 1e999}',
        b'{"a": "\xff"}',
        b'{"a": "\\ud800"}',
        b'{"a": "\\ud800\\u0041"}',
        b"{'a': 1}",
        b'{"a": 1} x',
        b'{"a": "\n"}',
        b"[" * 100_000,
        b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    ],
)
def test_broken_json_is_invalid_json(body: bytes):
    with pytest.raises(InvalidJson):
        json_input.load(body)


@pytest.mark.parametrize("body", [b"[]", b"null", b'"text"', b"1", b"true"])
def test_anything_but_an_object_is_refused(body: bytes):
    with pytest.raises(InvalidRequest, match="object"):
        json_input.load(body)


def _nested(levels: int) -> bytes:
    return b'{"a":' * (levels - 1) + b"{}" + b"}" * (levels - 1)


def test_64_levels_are_taken_and_65_are_not():
    json_input.load(_nested(64))
    with pytest.raises(InvalidRequest, match="deeply"):
        json_input.load(_nested(65))


def test_brackets_inside_text_are_not_levels():
    body = msgspec.json.encode({"code": "[" * 1_000 + "{" * 1_000})
    assert json_input.load(body)["code"].startswith("[[[")


def test_a_body_of_endless_small_elements_is_refused_before_it_is_read():
    with pytest.raises(InvalidRequest, match="too many elements"):
        json_input.load(b'{"a":[' + b"{}," * 600_000 + b"{}]}")


@given(st.binary(max_size=200))
def test_any_bytes_are_an_object_or_an_invalid_request(body: bytes):
    with contextlib.suppress(InvalidRequest):
        assert isinstance(json_input.load(body), dict)


def test_a_missing_field_is_named():
    with pytest.raises(MissingParameter) as caught:
        json_input.typed({"count": 1}, Body)
    assert caught.value.param == "model"


def test_a_missing_field_deep_inside_is_named_with_its_path():
    with pytest.raises(MissingParameter) as caught:
        json_input.typed({"model": "m", "inner": [{"text": "a"}, {}]}, Body)
    assert caught.value.param == "inner[1].text"


@pytest.mark.parametrize(
    ("value", "param"),
    [
        ({"model": 1}, "model"),
        ({"model": None}, "model"),
        ({"model": "m", "count": True}, "count"),
        ({"model": "m", "count": 1.5}, "count"),
        ({"model": "m", "count": "1"}, "count"),
        ({"model": "m", "inner": {"text": "a"}}, "inner"),
        ({"model": "m", "inner": [{"text": ["a"]}]}, "inner[0].text"),
    ],
)
def test_a_wrong_type_is_named_with_its_path(value: dict[str, Any], param: str):
    with pytest.raises(InvalidValue) as caught:
        json_input.typed(value, Body)
    assert caught.value.param == param
    assert param in caught.value.message


def test_extras_are_what_the_shape_does_not_know():
    known = json_input.field_names(Body)
    assert known == {"model", "count", "inner"}
    assert json_input.extras({"model": "m"}, known) is None
    assert json_input.extras({"model": "m", "new": None}, known) == {"new": None}
