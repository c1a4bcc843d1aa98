"""Answers are made from the request: repeatable, of the counted size, fitting the schema."""

from typing import Annotated, Any, Literal

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.demo import Behaviour, schema, sentences, tokens
from gwd.demo.prompt_cache import Cached, Piece, PromptCache
from tests.demo.requests import BODIES, CHAT_TOOL, PATHS, chat


@given(st.text())
def test_tokens_of_a_text_are_the_text(text: str):
    assert "".join(tokens.split(text)) == text
    assert tokens.count(text) == len(tokens.split(text))


def test_token_rule():
    assert tokens.split("Hello extraordinary 12345  world!") == [
        "Hello",
        " extraord",
        "inary",
        " 123",
        "45",
        "  ",
        "world",
        "!",
    ]
    assert tokens.count("漢字") == 2


@given(st.binary(min_size=1, max_size=16), st.integers(min_value=1, max_value=300))
def test_answer_of_a_length_has_that_length(seed: bytes, length: int):
    pieces = sentences.answer_of_length(seed, "tea", length)
    assert len(pieces) == length
    assert tokens.count("".join(pieces)) == length


@pytest.mark.parametrize("form", BODIES)
async def test_same_request_same_answer_another_request_another(http: httpx.AsyncClient, form: str):
    def text_of(answer: httpx.Response) -> str:
        return str(
            [part for part in answer.text.split('"') if part.endswith(".") and part[:1].isupper()]
        )

    first = await http.post(PATHS[form], json=BODIES[form]("About rivers"))
    again = await http.post(PATHS[form], json=BODIES[form]("About rivers"))
    other = await http.post(PATHS[form], json=BODIES[form]("About mountains"))
    assert text_of(first) == text_of(again)
    assert text_of(first) != text_of(other)
    assert first.json()["id"] != again.json()["id"]


async def test_exact_length_and_reasoning_can_be_asked_for(http: httpx.AsyncClient):
    answer = await http.post(PATHS["chat"], json=chat("[[fault: tokens=77]]"))
    assert answer.json()["usage"]["completion_tokens"] == 77


async def test_tool_call_cut_by_the_cap_is_incomplete(http: httpx.AsyncClient):
    body = chat("get weather in Rome", tools=[CHAT_TOOL], max_tokens=4)
    choice = (await http.post(PATHS["chat"], json=body)).json()["choices"][0]
    assert choice["finish_reason"] == "length"
    arguments = choice["message"]["tool_calls"][0]["function"]["arguments"]
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(arguments)


class Leg(msgspec.Struct):
    start: str
    km: Annotated[float, msgspec.Meta(gt=0, le=100)]
    back: "Leg | None" = None


class Trip(msgspec.Struct):
    name: Annotated[str, msgspec.Meta(min_length=30, max_length=40)]
    kind: Literal["bus", "rail"]
    legs: Annotated[list[Leg], msgspec.Meta(min_length=2, max_length=3)]
    seats: Annotated[int, msgspec.Meta(ge=10, multiple_of=5)]
    fixed: Literal[7]
    extra: dict[str, int] | None
    open: bool = True


@given(st.binary(min_size=1, max_size=8))
def test_examples_fit_their_schema(seed: bytes):
    made = schema.example(msgspec.json.schema(Trip), seed=seed, hint='Plan "North line" please')
    trip = msgspec.convert(made, Trip)
    assert trip.name.startswith("North line")


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        ({"const": 5}, 5),
        ({"type": ["null", "integer"], "minimum": 3, "maximum": 3}, 3),
        ({"type": "number", "exclusiveMaximum": 0, "exclusiveMinimum": -2}, -1),
        ({"allOf": [{"properties": {"a": {"const": 1}}}], "required": ["a"]}, {"a": 1}),
        ({"prefixItems": [{"const": 1}, {"const": 2}]}, [1, 2]),
        ({"type": "array", "maxItems": 0}, []),
        ({"type": "string", "format": "date"}, "2026-03-14"),
        ({"type": "object"}, {}),
    ],
)
def test_examples_of_single_rules(shape: dict[str, Any], value: Any):
    assert schema.example(shape, seed=b"x") == value


def test_a_schema_that_contains_itself_ends():
    tree: dict[str, Any] = {
        "type": "object",
        "properties": {"below": {"type": "array", "items": {"$ref": "#"}}},
    }
    assert schema.example(tree, seed=b"x")["below"]


def test_cache_reads_the_longest_known_marked_prefix():
    cache = PromptCache(minimum=10)
    pieces = [Piece("a", 8, "1h"), Piece("b", 8, "1h"), Piece("c", 8, "5m"), Piece("d", 8)]
    assert cache.look_up_marked("m", pieces) == Cached(write_1h=16, write_5m=8)
    assert cache.look_up_marked("m", pieces) == Cached(read=24)
    changed = [*pieces[:2], Piece("x", 8, "5m")]
    assert cache.look_up_marked("m", changed) == Cached(read=16, write_5m=8)
    assert cache.look_up_marked("other", pieces) == Cached(write_1h=16, write_5m=8)
    assert cache.look_up_marked("m", [Piece("a", 8, "5m")]) == Cached()


def test_behaviour_is_honest_by_default():
    assert Behaviour().usage == Behaviour().finish == "honest"
