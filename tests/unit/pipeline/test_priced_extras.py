"""A request as its target is sent it: what has no price is gone, and nothing else."""

from typing import Any

import msgspec

from gwd.core.extras import Sold
from gwd.core.request import Generate, Request, TextPart, Tool, ToolChoice
from gwd.pipeline.dispatch.priced_extras import with_sold_extras
from gwd.pricing.extras import sell
from gwd.vendors.formats import FORMATS
from tests.unit.pricing.builders import OPUS, chat

OWN = {"name": "f", "input_schema": {"type": "object"}}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
PRICED = msgspec.structs.replace(OPUS, web_search_nano=1)
ANT = "anthropic_messages"


def agents(*parts: Any, choice: ToolChoice | None = None, **fields: Any) -> Request:
    request = chat(*parts or ("hi",))
    assert isinstance(request.body, Generate)
    body = msgspec.structs.replace(request.body, tools=(Tool(name="f"),), tool_choice=choice)
    return msgspec.structs.replace(request, family=ANT, body=body, **fields)


def test_what_is_sold_whole_is_the_same_request() -> None:
    request = agents(extras={"service_tier": "auto", "tools": [OWN, {"type": "bash_20250124"}]})
    assert with_sold_extras(request, sell(request, FORMATS[ANT], OPUS)) is request


def test_fields_without_a_price_and_the_beta_of_a_speed_are_gone() -> None:
    request = agents(
        extras={"speed": "fast", "container": "c", "top_secret": 1},
        vendor_headers={"anthropic-beta": "a-1, fast-mode-2026-02-01,b-2"},
    )
    sent = with_sold_extras(request, sell(request, FORMATS[ANT], OPUS))
    assert sent.extras == {"top_secret": 1}
    assert sent.vendor_headers == {"anthropic-beta": "a-1,b-2"}
    only = msgspec.structs.replace(request, vendor_headers={"anthropic-beta": "fast-mode-1"})
    assert with_sold_extras(only, sell(only, FORMATS[ANT], OPUS)).vendor_headers == {}


def test_tools_without_a_price_are_gone_and_so_is_a_choice_that_forces_one() -> None:
    request = agents(
        extras={"tools": [OWN, SEARCH]}, choice=ToolChoice(mode="named", name="web_search")
    )
    sent = with_sold_extras(request, sell(request, FORMATS[ANT], OPUS))
    assert sent.extras is None
    assert isinstance(sent.body, Generate)
    assert sent.body.tool_choice == ToolChoice()
    kept = agents(extras={"tools": [OWN, SEARCH]}, choice=ToolChoice(mode="named", name="f"))
    body = with_sold_extras(kept, sell(kept, FORMATS[ANT], OPUS)).body
    assert isinstance(body, Generate)
    assert body.tool_choice == ToolChoice(mode="named", name="f")


def test_a_search_is_sent_with_the_bound_that_is_held_for() -> None:
    request = agents(extras={"tools": [OWN, SEARCH, {**SEARCH, "max_uses": 3}]})
    sold = sell(request, FORMATS[ANT], PRICED)
    sent = with_sold_extras(request, sold)
    assert sold.searches == 13
    assert sent.extras is not None
    assert [tool.get("max_uses") for tool in sent.extras["tools"]] == [None, 10, 3]


def test_definitions_inside_messages_are_sold_like_others() -> None:
    block = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": SEARCH}}
    request = agents(
        TextPart(text="", extras=block),
        TextPart(text="hi"),
        vendor_headers={"anthropic-beta": "inline-tools-2026-09-15"},
    )
    without = with_sold_extras(request, sell(request, FORMATS[ANT], OPUS)).body
    bounded = with_sold_extras(request, sell(request, FORMATS[ANT], PRICED)).body
    assert isinstance(without, Generate)
    assert isinstance(bounded, Generate)
    assert without.messages[0].parts == (TextPart(text="hi"),)
    first = bounded.messages[0].parts[0]
    assert isinstance(first, TextPart)
    assert first.extras is not None
    assert first.extras["tool"]["definition"] == {**SEARCH, "max_uses": 10}


def test_searches_of_responses_are_bounded_by_one_number() -> None:
    request = msgspec.structs.replace(
        chat("hi"), family="openai_responses", hosted_tools=({"type": "web_search"},)
    )
    sold = sell(request, FORMATS["openai_responses"], PRICED)
    assert with_sold_extras(request, sold).extras == {"max_tool_calls": 10}
    assert with_sold_extras(request, Sold()).extras is None
