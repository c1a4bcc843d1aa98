"""Priced extras: what is sold where, what an answer is billed, and that the hold covers it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwd.core.cost import Price
from gwd.core.extras import FIELDS, ONE, Applied, Factor, Given, Sold
from gwd.core.request import Generate, Request, TextPart, Tool
from gwd.core.usage import Usage
from gwd.pricing.cost import cost
from gwd.pricing.extras import applied, ceilings, leaves_no_tool, sell
from gwd.pricing.hold import hold, measure
from gwd.vendors.formats import FORMATS
from tests.unit.pricing.builders import OPUS, chat, target
from tests.unit.pricing.test_cost import parts_of, prices
from tests.unit.pricing.test_hold import bounded_usages

FACTORS = {
    "service_tier": {"priority": 2_000_000, "flex": 500_000},
    "speed": {"fast": 6_000_000},
    "inference_geo": {"us": 1_100_000},
}
PRICED = msgspec.structs.replace(OPUS, modifiers=FACTORS, web_search_nano=10_000_000)
SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
ANT, OAI, RSP = "anthropic_messages", "openai_chat", "openai_responses"


def asked(family: str, hosted: tuple[dict[str, Any], ...] = (), **extras: Any) -> Request:
    return msgspec.structs.replace(
        chat("hi"), family=family, extras=extras or None, hosted_tools=hosted
    )


SELLING: list[tuple[str, Request, str, Price, Sold]] = [
    ("nothing asked", asked(OAI), OAI, PRICED, Sold()),
    ("a tier with a price", asked(OAI, service_tier="flex"), OAI, PRICED,
     Sold(values={"service_tier": "flex"})),
    ("a tier of a relative", asked(RSP, service_tier="flex"), OAI, PRICED,
     Sold(values={"service_tier": "flex"})),
    ("a tier of another family", asked(OAI, service_tier="flex"), ANT, PRICED,
     Sold(refused=("service_tier",))),
    ("a tier without a price", asked(OAI, service_tier="scale"), OAI, PRICED,
     Sold(refused=("service_tier",))),
    ("a tier in other letters", asked(OAI, service_tier="Priority"), OAI, PRICED,
     Sold(refused=("service_tier",))),
    ("a tier that is no word", asked(OAI, service_tier=["priority"]), OAI, PRICED,
     Sold(refused=("service_tier",))),
    ("no tier", asked(OAI, service_tier=None), OAI, PRICED, Sold()),
    ("a plain tier at home", asked(OAI, service_tier="auto"), OAI, OPUS,
     Sold(values={"service_tier": "auto"})),
    ("a plain tier abroad", asked(ANT, service_tier="standard_only"), OAI, OPUS, Sold()),
    ("speed without a price", asked(ANT, speed="fast"), ANT, OPUS, Sold(refused=("speed",))),
    ("plain speed", asked(ANT, speed="standard"), ANT, OPUS, Sold(values={"speed": "standard"})),
    ("speed sent to a server of the same format", asked(OAI, speed="fast"), OAI, OPUS,
     Sold(refused=("speed",))),
    ("servers without a price", asked(ANT, mcp_servers=[{}], container="c"), ANT, PRICED,
     Sold(refused=("mcp_servers", "container"))),
    ("servers at any value",
     asked(ANT, mcp_servers=[{}], tools=[{"type": "mcp_toolset", "mcp_server_name": "m"}]), ANT,
     msgspec.structs.replace(OPUS, modifiers={"mcp_servers": {"*": ONE}}),
     Sold(values={"mcp_servers": "*"}, tools=("mcp_toolset",))),
    ("searches", asked(ANT, tools=[SEARCH]), ANT, PRICED,
     Sold(tools=("web_search_20250305",), searches=8)),
    ("searches without a bound", asked(ANT, tools=[{"type": "web_search_20260209"}]), ANT, PRICED,
     Sold(tools=("web_search_20260209",), searches=10)),
    ("searches with a bound that is none",
     asked(ANT, tools=[{"type": "web_search_20260209", "max_uses": "8"}]), ANT, PRICED,
     Sold(tools=("web_search_20260209",), searches=10)),
    ("searches with the bound of another format", asked(ANT, tools=[SEARCH], max_tool_calls=1), ANT,
     PRICED, Sold(tools=("web_search_20250305",), searches=8)),
    ("searches with a bound of none", asked(RSP, ({"type": "web_search"},), max_tool_calls=0), RSP,
     PRICED, Sold(tools=("web_search",), searches=10)),
    ("searches without a price", asked(ANT, tools=[SEARCH]), ANT, OPUS,
     Sold(refused=("web_search",), refused_tools=("web_search_20250305",))),
    ("searches abroad", asked(ANT, tools=[SEARCH]), OAI, PRICED,
     Sold(refused=("web_search",), refused_tools=("web_search_20250305",))),
    ("tools that the client runs", asked(ANT, tools=[{"type": "bash_20250124", "name": "bash"}]),
     ANT, OPUS, Sold(tools=("bash_20250124",))),
    ("a tool that is not known", asked(ANT, tools=[{"type": "oracle_20270101"}]), ANT, PRICED,
     Sold(refused=("oracle",), refused_tools=("oracle_20270101",))),
    ("searches of responses", asked(RSP, ({"type": "web_search"},)), RSP, PRICED,
     Sold(tools=("web_search",), searches=10)),
    ("an older form of them",
     asked(RSP, ({"type": "web_search_preview_2025_03_11"},), max_tool_calls=3), RSP, PRICED,
     Sold(tools=("web_search_preview_2025_03_11",), searches=3)),
    ("a tool of responses by its kind",
     asked(RSP, ({"type": "file_search"}, {"type": "image_generation"})), RSP,
     msgspec.structs.replace(OPUS, modifiers={"tools": {"file_search": ONE}}),
     Sold(tools=("file_search",), refused=("image_generation",), refused_tools=("image_generation",))),
    ("web_search_options", asked(OAI, web_search_options={}), OAI, PRICED,
     Sold(values={"web_search_options": "*"}, searches=10)),
    ("web_search_options without a price", asked(OAI, web_search_options={}), OAI, OPUS,
     Sold(refused=("web_search_options",))),
    ("a search that is off", asked(OAI, enable_search=False), OAI, OPUS, Sold()),
]  # fmt: skip


def test_only_what_has_a_price_is_sold() -> None:
    found = {
        name: sell(request, FORMATS[adapter], price) for name, request, adapter, price, _ in SELLING
    }
    assert found == {name: sold for name, *_, sold in SELLING}


def test_a_definition_inside_a_message_is_a_tool_like_any_other() -> None:
    block = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": SEARCH}}
    request = chat(TextPart(text="", extras=block))
    request = msgspec.structs.replace(
        request, family=ANT, vendor_headers={"anthropic-beta": "a,inline-tools-2026-09-15"}
    )
    assert sell(request, FORMATS[ANT], OPUS).refused_tools == ("web_search_20250305",)
    assert sell(request, FORMATS[ANT], PRICED).searches == 8


def test_a_request_keeps_a_tool_or_is_not_for_this_endpoint() -> None:
    alone, beside = asked(ANT, tools=[SEARCH]), asked(ANT, tools=[SEARCH, {"name": "f"}])
    assert isinstance(beside.body, Generate)
    own = msgspec.structs.replace(beside.body, tools=(Tool(name="f"),))
    beside = msgspec.structs.replace(beside, body=own)
    assert leaves_no_tool(alone, sell(alone, FORMATS[ANT], OPUS))
    assert not leaves_no_tool(alone, sell(alone, FORMATS[ANT], PRICED))
    assert not leaves_no_tool(beside, sell(beside, FORMATS[ANT], OPUS))


@pytest.mark.parametrize(
    ("sold", "fills"),
    [
        (Sold(), False),
        (Sold(tools=("bash_20250124", "tool_search_tool_bm25_20251119")), False),
        (Sold(tools=("web_fetch_20250910",)), True),
        (Sold(tools=("web_search_20250305",), searches=2), True),
        (Sold(values={"web_search_options": "*"}, searches=10), True),
        (Sold(values={"mcp_servers": "*"}), True),
    ],
)
def test_results_of_the_vendors_tools_may_fill_the_context(sold: Sold, *, fills: bool) -> None:
    to = msgspec.structs.replace(target(PRICED, context_length=150_000), sold=sold)
    held = hold(measure(chat("hi")), to)
    assert (held.prompt_tokens == 150_000) is fills
    assert held.amount_nano >= sold.searches * 10_000_000


BILLING: list[tuple[str, str, Sold, Given | None, dict[str, int]]] = [
    ("as asked", OAI, Sold(values={"service_tier": "priority"}),
     Given(values={"service_tier": "priority"}), {"service_tier": 2_000_000}),
    ("taken back", OAI, Sold(values={"service_tier": "priority"}),
     Given(values={"service_tier": "default"}), {}),
    ("not said", OAI, Sold(values={"service_tier": "flex"}), None, {"service_tier": 500_000}),
    ("called otherwise", OAI, Sold(values={"service_tier": "flex"}),
     Given(values={"service_tier": "slow"}), {"service_tier": 500_000}),
    ("chosen by the account", OAI, Sold(), Given(values={"service_tier": "priority"}),
     {"service_tier": 2_000_000}),
    ("chosen by the account under auto", ANT, Sold(values={"service_tier": "auto"}),
     Given(values={"service_tier": "priority", "inference_geo": "us"}),
     {"service_tier": 2_000_000, "inference_geo": 1_100_000}),
    ("auto is no answer", OAI, Sold(values={"service_tier": "flex"}),
     Given(values={"service_tier": "auto"}), {"service_tier": 500_000}),
    ("dearer than it can be", OAI, Sold(values={"service_tier": "default"}),
     Given(values={"service_tier": "priority"}), {}),
    ("speed that nobody asked for", ANT, Sold(), Given(values={"speed": "fast"}), {}),
    ("a region that the model does not know", ANT, Sold(values={"inference_geo": "us"}),
     Given(values={"inference_geo": "not_available"}), {}),
    ("without a price", OAI, Sold(), Given(values={"service_tier": "ultrafast"}), {}),
]  # fmt: skip


def test_billed_is_what_the_vendor_says_it_gave() -> None:
    found = {
        name: {
            field: factor.millionths
            for field, factor in applied(given_, PRICED, FORMATS[adapter], sold).factors.items()
        }
        for name, adapter, sold, given_, _ in BILLING
    }
    assert found == {name: factors for name, *_, factors in BILLING}


@pytest.mark.parametrize(
    ("adapter", "reported", "billed"),
    [(ANT, 3, 3), (ANT, None, 0), (ANT, 4_000, 8), (OAI, None, 1), (OAI, 0, 0)],
)
def test_searches_are_billed_as_they_are_counted(
    adapter: str, reported: int | None, billed: int
) -> None:
    sold = Sold(values={"web_search_options": "*"}, searches=8)
    assert applied(Given(searches=reported), PRICED, FORMATS[adapter], sold).searches == billed


def test_factors_multiply_every_class_of_tokens_and_nothing_else() -> None:
    price = msgspec.structs.replace(PRICED, request_nano=7, image_nano=11)
    usage = Usage(input=3, cache_read=5, cache_write_1h=1, output=2, reasoning=1, images=2)
    plain = cost(usage, price, insured=False)
    both = Applied(
        factors={
            "speed": Factor(value="fast", millionths=6_000_000),
            "inference_geo": Factor(value="us", millionths=1_100_000),
        },
        searches=3,
    )
    dearer = cost(usage, price, insured=False, applied=both)
    pictures = 2 * 11
    assert dearer.prompt_nano - pictures == (plain.prompt_nano - pictures) * 66 // 10
    assert dearer.cache_read_nano == plain.cache_read_nano * 66 // 10
    assert dearer.cache_write_nano == plain.cache_write_nano * 66 // 10
    assert dearer.completion_nano == plain.completion_nano * 66 // 10
    assert dearer.reasoning_nano == plain.reasoning_nano * 66 // 10
    assert (dearer.request_fee_nano, dearer.web_search_nano) == (7, 30_000_000)


def test_a_class_is_rounded_once_after_its_factor() -> None:
    """1 token at 333 pico: 0.333 nano rounds to 0, three times it is 0.999 and rounds to 1."""
    price = msgspec.structs.replace(OPUS, prompt_pico=333)
    thrice = Applied(factors={"service_tier": Factor(value="priority", millionths=3_000_000)})
    usage = Usage(input=1)
    assert cost(usage, price, insured=False).prompt_nano == 0
    assert cost(usage, price, insured=False, applied=thrice).prompt_nano == 1


def factors() -> st.SearchStrategy[dict[str, dict[str, int]]]:
    words = st.sampled_from(["priority", "flex", "fast", "us", "eu", "default", "auto", "*"])
    return st.dictionaries(
        st.sampled_from(FIELDS), st.dictionaries(words, st.integers(1, 1_000_000_000), max_size=4)
    )


def words() -> st.SearchStrategy[dict[str, str]]:
    said = ["priority", "flex", "fast", "us", "eu", "default", "auto", "standard", "batch", "x"]
    return st.dictionaries(st.sampled_from(FIELDS[:3]), st.sampled_from(said))


@settings(max_examples=300)
@given(
    bounded_usages(),
    prices(),
    factors(),
    st.integers(0, 10**9),
    words(),
    st.one_of(st.none(), st.builds(Given, values=words(), searches=st.integers(0, 10**6))),
    st.sampled_from([ANT, OAI, RSP, "gemini"]),
    st.sampled_from([ANT, OAI, RSP]),
    st.lists(st.sampled_from([SEARCH, {"type": "bash_20250124"}, {"type": "flex"}]), max_size=3),
)
def test_whatever_a_vendor_says_it_gave_the_parts_add_up_and_the_hold_covers_them(
    drawn: tuple[Any, int, int],
    price: Price,
    modifiers: dict[str, dict[str, int]],
    web_search_nano: int,
    sent: dict[str, Any],
    given_: Given | None,
    adapter: str,
    family: str,
    tools: list[dict[str, Any]],
) -> None:
    usage, prompt, output = drawn
    price = msgspec.structs.replace(price, modifiers=modifiers, web_search_nano=web_search_nano)
    request = (
        asked(family, **sent, tools=tools) if family == ANT else asked(family, tuple(tools), **sent)
    )
    sold = sell(request, FORMATS[adapter], price)
    billed = applied(given_, price, FORMATS[adapter], sold)
    made = cost(usage, price, insured=False, applied=billed)
    assert parts_of(made) == made.total_nano
    demand = measure(request)
    demand.prompt_bound, demand.output_cap, demand.images = prompt, max(output, 16), 5
    demand.writes_1h = True
    to = msgspec.structs.replace(
        target(price, context_length=2_000_000, max_completion_tokens=200_000),
        format=FORMATS[adapter],
        sold=sold,
    )
    assert made.total_nano <= hold(demand, to).amount_nano
    assert all(factor >= ONE for factor in ceilings(price, FORMATS[adapter], sold).values())
