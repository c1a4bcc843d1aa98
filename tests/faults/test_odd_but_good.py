"""Answers that are framed oddly, or in the other form than was asked for, are good answers at the exact price."""

import pytest

from gwd.demo import Behaviour
from tests.faults.bills import billed
from tests.faults.clients import CHAT, MESSAGES, Client
from tests.support.node import Gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

ODD_STREAMS = [
    "one_byte",
    "crlf",
    "cr",
    "cr one_byte",
    "crlf one_byte",
    "bom",
    "bom one_byte",
    "no_space",
    "comments",
    "comments crlf one_byte",
    "multi_line",
    "multi_line cr",
    "odd_json",
    "odd_json one_byte",
    "odd_json multi_line",
    "json_for_stream",
]


@pytest.mark.parametrize("words", ODD_STREAMS)
async def test_oddly_framed_stream_is_the_same_answer_at_the_same_price(
    node: Gateway, client: Client, words: str
) -> None:
    honest, honest_bill = await billed(node, client, stream=True, content="Émile 海 🌊")
    node.vendor.script.next(words, model=client.upstream)
    seen, bill = await billed(node, client, stream=True, content="Émile 海 🌊")
    assert (seen.status, seen.ended_well) == (200, True)
    assert seen.text == honest.text
    assert bill.outcome == ("succeeded", None, False)
    assert bill.tokens == honest_bill.tokens
    assert bill.charged_nano == honest_bill.charged_nano


@pytest.mark.parametrize("client_", [CHAT, MESSAGES], ids=lambda c: c.name)
async def test_end_without_the_closing_mark_is_an_end_where_the_reason_was_told(
    node: Gateway, client_: Client
) -> None:
    """The responses format tells its reason only in its last event: without that the answer broke off."""
    honest, honest_bill = await billed(node, client_, stream=True)
    node.vendor.script.next("no_done", model=client_.upstream)
    seen, bill = await billed(node, client_, stream=True)
    assert (seen.text, seen.ended_well) == (honest.text, True)
    assert bill.charged_nano == honest_bill.charged_nano
    assert bill.outcome == ("succeeded", None, False)


@pytest.mark.parametrize("words", ["stream_for_json", "stream_for_json cr bom"])
async def test_stream_for_a_whole_answer_is_put_together(
    node: Gateway, client: Client, words: str
) -> None:
    honest, honest_bill = await billed(node, client, stream=False)
    node.vendor.script.next(words, model=client.upstream)
    seen, bill = await billed(node, client, stream=False)
    assert seen.text == honest.text
    assert (bill.tokens, bill.charged_nano) == (honest_bill.tokens, honest_bill.charged_nano)


async def test_stream_under_a_wrong_content_type_is_put_together(
    node: Gateway, client: Client, stream: bool
) -> None:
    honest, honest_bill = await billed(node, client, stream=stream)
    words = Behaviour(
        malformed=None if stream else "stream_for_json", content_type="text/plain; charset=utf-8"
    )
    node.vendor.script.next(words, model=client.upstream)
    seen, bill = await billed(node, client, stream=stream)
    assert (seen.status, seen.text) == (200, honest.text)
    assert bill.charged_nano == honest_bill.charged_nano


async def test_character_cut_by_the_network_arrives_whole(node: Gateway, client: Client) -> None:
    text = "日本語 🌊 Ünïcode \u2028 end"
    node.vendor.script.next(
        Behaviour(text=text, write_bytes=1), Behaviour(text=text), model=client.upstream
    )
    seen, _ = await billed(node, client, stream=True)
    assert seen.text == text
    whole, _ = await billed(node, client, stream=False)
    assert whole.text == text


async def test_unknown_finish_word_is_no_failure(
    node: Gateway, client: Client, stream: bool
) -> None:
    node.vendor.script.next(Behaviour(finish="because"), model=client.upstream)
    seen, bill = await billed(node, client, stream=stream)
    assert (seen.status, seen.ended_well) == (200, True)
    assert bill.record["status"] == "succeeded"
