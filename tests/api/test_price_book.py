"""/catalog/prices: the shipped price book against the catalog, and taking its prices over."""

from decimal import Decimal
from typing import Any

from gwd.catalog import price_book
from tests.support.node import Gateway

SOL, FLASH = "openai/gpt-6-sol", "google/gemini-3.8-flash"
BOOK = price_book.shipped()


async def add(gateway: Gateway, name: str, **pricing: str) -> None:
    """A model of the book at a price of the test's own; what is not named costs what the book says."""
    price = BOOK.by_id()[name].prices[0]
    said = {
        key: getattr(price.pricing, key)
        for key in ("prompt", "completion", "input_cache_read", "input_cache_write")
        if isinstance(getattr(price.pricing, key), str)
    }
    await gateway.manage(
        "POST",
        "/catalog/models",
        {
            "id": name,
            "name": name,
            "vendor": "V",
            "context_length": 1000,
            "max_completion_tokens": 100,
            "supported_parameters": [],
            "pricing": said | pricing,
            "pricing_tiers": [
                {
                    "above_prompt_tokens": tier.above_prompt_tokens,
                    "pricing": {
                        key: getattr(tier.pricing, key)
                        for key in said
                        if isinstance(getattr(tier.pricing, key), str)
                    },
                }
                for tier in price.pricing_tiers
            ],
        },
    )


async def diff(gateway: Gateway, query: str = "") -> Any:
    return (await gateway.manage("GET", f"/catalog/prices/diff{query}"))["data"]


async def apply(gateway: Gateway, *, status: int | None = None, **body: Any) -> Any:
    return await gateway.manage("POST", "/catalog/prices/apply", body, status=status)


async def test_what_differs_is_told_with_how_much_and_what_the_book_does_not_know(
    gateway: Gateway,
) -> None:
    await add(gateway, SOL, prompt="0.0000016", completion="0.000005")
    found = await diff(gateway)
    assert "demo/chat" in found["unknown"]
    assert "new" not in found
    [told] = found["differences"]
    assert (told["model"], told["endpoint_id"], told["announced"]) == (SOL, None, False)
    assert [(c["name"], c["old"], c["new"], c["change_percent"]) for c in told["classes"]] == [
        ("prompt", "0.0000016", "0.000002", 25.0),
        ("completion", "0.000005", "0.00001", 100.0),
        ("internal_reasoning", "0.000005", "0.00001", 100.0),
    ]
    assert told["needs_acceptance"]
    assert told["reasons"][0] == "completion changes by more than 25 %"
    assert not [reason for reason in told["reasons"] if reason.startswith("prompt")]
    assert FLASH in (await diff(gateway, "?new=true"))["new"]


async def test_an_extra_that_is_not_sold_is_no_difference_unless_asked_for(
    gateway: Gateway,
) -> None:
    await add(gateway, SOL)
    assert (await diff(gateway))["differences"] == []
    [told] = (await diff(gateway, "?extras=true"))["differences"]
    assert [c["name"] for c in told["classes"]] == ["web_search"]
    assert told["reasons"] == ["web_search appears"]
    await apply(gateway, extras=True, accept=[SOL])
    assert (await diff(gateway, "?extras=true"))["differences"] == []


async def test_all_is_taken_over_or_nothing_and_then_nothing_differs(gateway: Gateway) -> None:
    """A small change is taken as it is, a large one only by name; an announced price keeps its day."""
    await add(gateway, SOL, prompt="0.0000019")
    await add(gateway, FLASH)
    refused = (await apply(gateway, status=409))["error"]
    assert (refused["code"], refused["param"]) == ("price_needs_acceptance", "accept")
    assert FLASH in refused["message"]
    assert SOL not in refused["message"]
    assert len((await diff(gateway))["differences"]) == 2
    [changed] = (await apply(gateway, models=[SOL]))["data"]
    assert changed["model"] == SOL
    [announced] = (await diff(gateway))["differences"]
    assert (announced["model"], announced["announced"]) == (FLASH, True)
    await apply(gateway, accept=[FLASH])
    record = (await gateway.manage("GET", f"/catalog/models/{FLASH}"))["data"]
    assert record["pricing"]["prompt"] == "0.00000075"
    assert record["prices"][-1]["effective_at"] == announced["effective_at"]
    assert (await diff(gateway))["differences"] == []
    assert (await apply(gateway))["data"] == []
    lines = (await gateway.manage("GET", "/audit"))["data"]
    mine = [line for line in lines if line["action"] == "prices.apply"]
    assert [line["details"]["models"] for line in mine] == [[FLASH], [SOL]]


async def test_amounts_by_the_piece_and_factors_stay(gateway: Gateway) -> None:
    await add(gateway, SOL, prompt="0.0000019", request="0.001")
    kept = {"service_tier": {"flex": "0.5"}}
    before = (await gateway.manage("GET", f"/catalog/models/{SOL}"))["data"]["pricing"]
    body = {"pricing": before | {"price_modifiers": kept}}
    await gateway.manage("PATCH", f"/catalog/models/{SOL}", body)
    await apply(gateway)
    after = (await gateway.manage("GET", f"/catalog/models/{SOL}"))["data"]["pricing"]
    assert after == body["pricing"] | {"prompt": "0.000002"}


async def test_a_class_that_vanishes_needs_acceptance(
    gateway: Gateway,
) -> None:
    await add(gateway, SOL, input_cache_write_1h="0.0000026")
    [told] = (await diff(gateway))["differences"]
    assert "input_cache_write_1h vanishes" in told["reasons"]


async def test_an_endpoints_own_price_is_compared_at_its_vendors_own_host_only(
    gateway: Gateway,
) -> None:
    await add(gateway, SOL)
    own = {"pricing": {"prompt": "0.000003", "completion": "0.00001"}}
    await gateway.add_provider("else", "openai_chat", "https://elsewhere.example/v1")
    await gateway.add_endpoint(SOL, "else", "sol", **own)
    assert (await diff(gateway))["differences"] == []
    await gateway.add_provider("near", "openai_chat", "https://api.openai.com/v1")
    near = await gateway.add_endpoint(SOL, "near", "sol", **own)
    [told] = (await diff(gateway))["differences"]
    assert told["endpoint_id"] == near
    await apply(gateway, accept=[SOL])
    assert (await diff(gateway))["differences"] == []


async def test_the_effect_on_the_last_thirty_days_is_their_tokens_at_either_price(
    gateway: Gateway,
) -> None:
    await add(gateway, SOL, prompt="0.000001", completion="0.000005", input_cache_read="0.0000002")
    model = (await gateway.manage("GET", "/catalog/endpoints?model=demo/chat"))["data"][0]
    await gateway.add_endpoint(SOL, model["provider"], "gpt-demo")
    record = await gateway.generation(await gateway.chat(model=SOL))
    [told] = (await diff(gateway))["differences"]
    effect = told["last_30d"]
    assert effect["requests"] == 1
    assert Decimal(str(effect["at_old"])) == Decimal(str(effect["charged"])) > 0
    assert Decimal(str(effect["charged"])) == Decimal(str(record["total_cost"]))
    assert Decimal(str(effect["at_new"])) == 2 * Decimal(str(effect["at_old"]))


async def test_a_name_that_is_not_in_both_is_refused(gateway: Gateway) -> None:
    for field in ("models", "accept"):
        error = (await apply(gateway, status=400, **{field: ["demo/chat"]}))["error"]
        assert error["param"] == field


async def test_prices_from_a_day_on_are_compared_from_that_day_on(gateway: Gateway) -> None:
    await add(gateway, SOL, prompt="0.0000019")
    day = "2031-01-01T00:00:00Z"
    await apply(gateway, effective_at=day)
    record = (await gateway.manage("GET", f"/catalog/models/{SOL}"))["data"]
    assert record["pricing"]["prompt"] == "0.0000019"
    assert (await diff(gateway, f"?effective_at={day}"))["differences"] == []
    assert len((await diff(gateway))["differences"]) == 1


async def effect(gateway: Gateway, *, status: int | None = None, **thought: Any) -> Any:
    return await gateway.manage("POST", "/catalog/prices/effect", thought, status=status)


async def test_a_price_that_is_thought_of_is_told_as_one_of_the_book_is(gateway: Gateway) -> None:
    """What it would change and come to, in which moment, and whether a change would have to accept it."""
    spent = Decimal(0)
    for _ in range(2):
        record = await gateway.generation(await gateway.chat())
        spent += Decimal(str(record["total_cost"]))
    model = (await gateway.manage("GET", "/catalog/models/demo/chat"))["data"]
    now = model["pricing"]
    assert (await effect(gateway, model="demo/chat", pricing=now))["data"] == []
    doubled = {**now, **{name: str(2 * Decimal(now[name])) for name in ("prompt", "completion")}}
    [told] = (await effect(gateway, model="demo/chat", pricing=doubled))["data"]
    assert {each["name"] for each in told["classes"]} >= {"prompt", "completion"}
    assert (told["needs_acceptance"], told["announced"], told["endpoint_id"]) == (
        False,
        False,
        None,
    )
    last = told["last_30d"]
    assert (last["requests"], Decimal(str(last["at_old"]))) == (2, spent)
    assert Decimal(str(last["at_new"])) == 2 * spent
    dear = {**now, "prompt": str(20 * Decimal(now["prompt"]))}
    day = "2031-01-01T00:00:00Z"
    [told] = (await effect(gateway, model="demo/chat", pricing=dear, effective_at=day))["data"]
    assert (told["needs_acceptance"], told["announced"], told["effective_at"]) == (True, True, day)
    assert "tenfold" in told["reasons"][0]
    # Nothing was changed, and what tells is what refuses.
    assert (await gateway.manage("GET", "/catalog/models/demo/chat"))["data"] == model
    await gateway.manage("PATCH", "/catalog/models/demo/chat", {"pricing": dear}, status=409)
    await gateway.manage("PATCH", "/catalog/models/demo/chat", {"pricing": doubled})
    assert (await effect(gateway, model="demo/chat", pricing=doubled))["data"] == []


async def test_an_effect_is_of_endpoints_without_a_price_of_their_own(gateway: Gateway) -> None:
    await gateway.chat()
    await gateway.at_rest()
    [endpoint] = (await gateway.manage("GET", "/catalog/endpoints?model=demo/chat"))["data"]
    now = (await gateway.manage("GET", "/catalog/models/demo/chat"))["data"]["pricing"]
    await gateway.manage("PATCH", f"/catalog/endpoints/{endpoint['id']}", {"pricing": now})
    dearer = {**now, "completion": str(3 * Decimal(now["completion"]))}
    [told] = (await effect(gateway, model="demo/chat", pricing=dearer))["data"]
    assert told["last_30d"]["requests"] == 0


async def test_an_effect_of_no_model_and_of_no_price_is_refused(gateway: Gateway) -> None:
    pricing = {"prompt": "0.000001", "completion": "0.000001"}
    await effect(gateway, model="demo/none", pricing=pricing, status=404)
    for wrong in ({"prompt": "dear"}, {"prompt": "-1"}, {"colour": "1"}):
        error = (await effect(gateway, model="demo/chat", pricing=wrong, status=400))["error"]
        assert error["param"].startswith("pricing")
