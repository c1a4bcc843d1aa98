"""Prices and costs as values: a dated price in pico-USD per token, a cost in nano-USD by token class."""

import msgspec


class PriceTier(msgspec.Struct, frozen=True, kw_only=True):
    """Rates that hold for the whole request once its prompt exceeds `above_prompt_tokens`."""

    above_prompt_tokens: int
    prompt_pico: int
    completion_pico: int
    cache_read_pico: int
    cache_write_5m_pico: int
    cache_write_1h_pico: int
    reasoning_pico: int


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """One version of an endpoint's official price; every fallback is already resolved.

    `modifiers` are factors, in millionths, per field and value of what makes a call dearer (core/extras.py): they
    multiply the price of every class of tokens, in every tier. `web_search_nano` is the amount per search that the
    vendor runs, None where none is sold; factors leave it, requests and images alone.
    `reasoning_is_separate` tells whether the vendor lists its own rate for reasoning tokens
    (receipts show null otherwise). `request_nano` and `image_nano` are whole amounts per request and per input image.
    """

    version: str
    prompt_pico: int
    completion_pico: int
    cache_read_pico: int
    cache_write_5m_pico: int
    cache_write_1h_pico: int
    reasoning_pico: int
    reasoning_is_separate: bool = False
    request_nano: int = 0
    image_nano: int = 0
    tiers: tuple[PriceTier, ...] = ()
    modifiers: dict[str, dict[str, int]] = {}
    web_search_nano: int | None = None


class Cost(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Cost of one generation by class, nano-USD.

    `total_nano` is what the balance is charged. For a request on the platform's key it is the sum of the
    eight classes, and 0 when insured; on the owner's own key only `platform_fee_nano` is charged and the
    token classes show the official price for information.
    `cache_discount_nano`, which is no class, is what the prompt would cost more if the vendor had no cache: below zero
    where more was written to it than read, None where it had no part or the request is insured.
    """

    prompt_nano: int = 0
    cache_read_nano: int = 0
    cache_write_nano: int = 0
    completion_nano: int = 0
    reasoning_nano: int = 0
    request_fee_nano: int = 0
    web_search_nano: int = 0
    platform_fee_nano: int = 0
    total_nano: int = 0
    cache_discount_nano: int | None = None
    insured: bool = False
    byok: bool = False

    @property
    def list_price_nano(self) -> int:
        """The official price of the tokens, the request and its searches, whoever pays the vendor."""
        return (
            self.prompt_nano
            + self.cache_read_nano
            + self.cache_write_nano
            + self.completion_nano
            + self.reasoning_nano
            + self.request_fee_nano
            + self.web_search_nano
        )
