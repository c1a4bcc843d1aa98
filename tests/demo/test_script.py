"""Which call gets which behaviour: queued, standing, or asked for by the call itself."""

import httpx
import pytest

from gwd.demo import (
    BEFORE_HEADERS,
    FAULT_HEADER,
    FLAGS,
    Behaviour,
    BehaviourError,
    Script,
    SimulatedVendor,
    parse,
)
from tests.demo.requests import BODIES, PATHS, chat

LIMITED = Behaviour(status=429)
FAILED = Behaviour(status=500)


def test_words_become_a_behaviour():
    assert parse("status=429 retry_after=3 message='Slow down'") == Behaviour(
        status=429, retry_after="3", message="Slow down"
    )
    assert parse("cut_before_headers") == Behaviour(cut="close", cut_after=BEFORE_HEADERS)
    assert parse("crlf delay_s=0.5") == Behaviour(line_ending="crlf", delay_s=0.5)
    assert parse("") == Behaviour()


@pytest.mark.parametrize("flag", FLAGS)
def test_every_flag_changes_something(flag: str):
    assert parse(flag) != Behaviour()


@pytest.mark.parametrize(
    ("words", "fragment"),
    [
        ("statsu=429", "'statsu' is not known; known are status"),
        ("explode", "'explode' is no flag; flags are rate_limited"),
        ("status=soon", "Expected `int | null`"),
        ("usage=wrong", "Invalid enum value 'wrong'"),
        ("message='open", "put values with blanks in quotes"),
        ("calls=x", "'calls' is not known"),
    ],
)
def test_senseless_words_are_named(words: str, fragment: str):
    with pytest.raises(BehaviourError) as error:
        parse(words)
    assert fragment in str(error.value)


def test_queue_of_the_model_comes_first_then_any_then_standing():
    script = Script()
    script.always("status=503", model="a")
    script.always(Behaviour(status=502))
    script.next(FAILED)
    script.next(LIMITED, model="a")
    assert script.take("a", None) == LIMITED
    assert script.take("a", None) == FAILED
    assert script.take("a", "status=400").status == 503
    assert script.take("b", None).status == 502
    script.clear()
    assert script.take("a", None) == Behaviour()


def test_words_hold_for_some_calls_only():
    script = Script()
    assert script.take("a", "status=500 times=2").status == 500
    assert script.take("b", "status=500 times=2").status == 500
    assert script.take("a", "status=500 times=2").status is None
    assert script.take("a", "status=500 only_model=b").status is None
    assert script.take("b", "status=500 only_model=b").status == 500


@pytest.mark.parametrize("form", BODIES)
async def test_prompt_asks_for_a_fault(http: httpx.AsyncClient, form: str):
    asked = BODIES[form]("Hello. [[fault: status=429 retry_after=3]]")
    answer = await http.post(PATHS[form], json=asked)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "3")
    healthy = await http.post(PATHS[form], json=BODIES[form]())
    assert healthy.status_code == 200


async def test_only_the_last_user_message_counts(http: httpx.AsyncClient):
    history = [
        {"role": "user", "content": "[[fault: status=500]]"},
        {"role": "assistant", "content": "[[fault: status=500]]"},
        {"role": "user", "content": "again"},
    ]
    answer = await http.post(PATHS["chat"], json={"model": "gpt-demo", "messages": history})
    assert answer.status_code == 200


async def test_header_and_model_suffix_ask_too(http: httpx.AsyncClient, vendor: SimulatedVendor):
    by_header = await http.post(PATHS["chat"], json=chat(), headers={FAULT_HEADER: "status=503"})
    assert by_header.status_code == 503
    named = {**chat(), "model": "gpt-demo#status=429,retry_after=5"}
    by_name = await http.post(PATHS["chat"], json=named)
    assert (by_name.status_code, by_name.headers["retry-after"]) == (429, "5")
    assert [call.model for call in vendor.calls] == ["gpt-demo", "gpt-demo"]
    honest = await http.post(PATHS["chat"], json={**chat(), "model": "gpt-demo#"})
    assert honest.status_code == 200


async def test_senseless_fault_in_a_prompt_is_a_400_that_helps(http: httpx.AsyncClient):
    answer = await http.post(PATHS["chat"], json=chat("[[fault: boom]]"))
    assert answer.status_code == 400
    assert "flags are" in answer.json()["error"]["message"]
