"""The shipped price book: it can be read, its prices can be charged, and those checked by hand are the catalog's."""

import tomllib
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from gwd.catalog import price_book
from gwd.catalog.price_body import PriceBody, Pricing, check
from gwd.catalog.price_differences import _classes, _merged, _reasons, _steps
from gwd.catalog.prices import PriceVersion, price_of
from gwd.core.money import price_text

ROOT = Path(__file__).parents[3]
BOOK = price_book.shipped()
CATALOG = tomllib.loads((ROOT / "examples/catalog.toml").read_text("utf-8"))


def test_every_price_can_be_charged_and_names_its_vendor():
    for model in BOOK.models:
        assert model.id.partition("/")[0] in BOOK.hosts
        assert model.prices[0].effective_at is None
        for price in model.prices:
            check(price.body)
            assert price_of("prc", price.body, is_embedding=not model.max_completion_tokens)
    ids = [model.id for model in BOOK.models]
    assert ids == sorted(set(ids))


def test_what_the_shipped_catalog_says_wins():
    known = BOOK.by_id()
    for model in CATALOG["models"]:
        price = known[model["id"]].prices[0]
        assert known[model["id"]].source == "catalog"
        named = {
            name: text
            for name in Pricing.__struct_fields__
            if (text := getattr(price.pricing, name)) is not UNSET
        }
        assert named == model["pricing"]
        assert len(price.pricing_tiers) == len(model.get("pricing_tiers", []))


def test_the_licences_are_kept_beside_it():
    text = price_book.BOOK.with_name("price_book.LICENSES").read_text("utf-8")
    assert text.count("Permission is hereby granted") == len(BOOK.sources)


PICO = st.integers(0, 10**8).map(price_text)
PRICED = st.builds(
    Pricing, prompt=PICO, completion=PICO, input_cache_read=PICO | st.just(UNSET),
    input_cache_write_1h=PICO | st.just(UNSET), web_search=st.just(UNSET) | st.just("0.02"),
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(model=st.sampled_from(BOOK.models), pricing=PRICED, extras=st.booleans())
def test_nothing_differs_once_all_is_taken_over(model, pricing, extras):
    """Whatever the price was, and whatever is announced."""
    begun = [PriceVersion(id="0", model=model.id, endpoint_id=None, effective_at_us=0,
                          body=PriceBody(pricing=pricing))]  # fmt: skip
    is_embedding = not model.max_completion_tokens
    taken = [
        PriceVersion(id="1", model=model.id, endpoint_id=None, effective_at_us=at, body=body)
        for at, before, body in _steps(model, begun, 1, extras=extras)
        if _classes(before, body, is_embedding=is_embedding)
    ]
    left = [
        _classes(before, body, is_embedding=is_embedding)
        for _, before, body in _steps(model, begun + taken, 1, extras=extras)
    ]
    assert left == [()] * len(left)


@given(old=st.integers(1, 10**6), new=st.integers(1, 10**6))
def test_more_than_a_quarter_needs_acceptance(old, new):
    """Exactly 25 % does not."""
    price = BOOK.by_id()["openai/gpt-6-sol"].prices[0]
    before, body = (
        PriceBody(pricing=Pricing(prompt=price_text(pico), completion="0.00001"))
        for pico in (old, new)
    )
    reasons = list(_reasons(before, body, _classes(before, body, is_embedding=False)))
    assert bool(reasons) == (abs(new - old) * 4 > old)
    assert _merged(None, price, extras=True).pricing.web_search == "0.01"


def test_a_price_of_nothing_and_a_first_price_need_acceptance():
    some, free = (
        PriceBody(pricing=Pricing(prompt=prompt, completion="0.00001"))
        for prompt in ("0.000001", "0")
    )
    found = [
        list(_reasons(before, body, _classes(before, body, is_embedding=False)))
        for before, body in ((some, free), (None, some))
    ]
    assert "prompt costs nothing" in found[0]
    assert "there is no price yet" in found[1]
