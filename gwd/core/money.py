"""Money as integers: nano-USD for amounts, pico-USD per token for prices; text and JSON at the edges.

One rounding rule: a class of cost is rounded once, half up, to a nano; percentage fees round down.
"""

from decimal import Context, Decimal, Inexact
from typing import Final

import msgspec

from gwd.core import numbers

NANO_PER_USD: Final = 1_000_000_000
PICO_PER_NANO: Final = 1_000
PICO_PER_USD: Final = 1_000_000_000_000
MAX_NANO: Final = 9_000_000_000_000_000_000
MAX_INPUT_USD: Final = 1_000_000
MAX_PRICE_PER_TOKEN_USD: Final = 1
MILLIONTHS: Final = 1_000_000
MAX_FACTOR: Final = 1_000
BPS_PER_WHOLE: Final = 10_000
_EXACT: Final = Context(prec=40, traps=[Inexact])
"""Far more digits than an amount in range can have: what has to be rounded here is too fine."""


class MoneyError(ValueError):
    """An amount or a price that cannot be taken; the text says why, without naming a field."""


def nano_from_pico(pico: int) -> int:
    """Pico-USD as nano-USD, rounded once, half up."""
    return (pico + PICO_PER_NANO // 2) // PICO_PER_NANO


def nano_from_pico_times(pico: int, *, above: int, below: int) -> int:
    """Pico-USD times a factor `above / below` as nano-USD, rounded once, half up."""
    unit = PICO_PER_NANO * below
    return (2 * pico * above + unit) // (2 * unit)


def fee_nano(amount_nano: int, fee_bps: int) -> int:
    """A percentage fee in basis points, rounded down so that rounding never overcharges."""
    return amount_nano * fee_bps // BPS_PER_WHOLE


def nano_from_usd(amount: Decimal | int) -> int:
    """USD as read from JSON to nano-USD; at most nine decimals, 0 to one million.

    Raises MoneyError for negative, non-finite, too fine or too large amounts.
    """
    return _scaled(amount, NANO_PER_USD, 9, MAX_INPUT_USD, "USD")


def millionths_from_factor(factor: Decimal | str) -> int:
    """A factor (a decimal string in catalogs) to whole millionths; above 0 to 1000, at most six decimals.

    Raises MoneyError for anything else.
    """
    value = factor if isinstance(factor, Decimal) else numbers.read(factor)
    if value is None:
        hint = numbers.hint(factor) if isinstance(factor, str) else ""
        what = "must be a factor as a decimal string, for example 1.1"
        raise MoneyError(f"{what}; {hint}" if hint else what)
    millionths = _scaled(value, MILLIONTHS, 6, MAX_FACTOR, "times the list price")
    if not millionths:
        raise MoneyError("must be above 0: what is free has the factor 1 of a price of 0")
    return millionths


def factor_text(millionths: int) -> str:
    """A factor as a plain decimal string."""
    return _plain(millionths, 6)


def pico_from_price(price: Decimal | str) -> int:
    """USD per token (a decimal string in catalogs) to pico-USD per token; 0 to 1 USD, at most twelve decimals.

    Raises MoneyError for anything else.
    """
    value = price if isinstance(price, Decimal) else numbers.read(price)
    if value is None:
        hint = numbers.hint(price) if isinstance(price, str) else ""
        what = "must be a decimal string in USD per token, such as 0.0000025"
        raise MoneyError(f"{what}; {hint}" if hint else what)
    return _scaled(value, PICO_PER_USD, 12, MAX_PRICE_PER_TOKEN_USD, "USD per token")


def usd_text(nano: int) -> str:
    """Nano-USD as a plain decimal string: no exponent, no trailing zeros."""
    return _plain(nano, 9)


def price_text(pico: int) -> str:
    """Pico-USD per token as a plain decimal string in USD per token, as model records show it."""
    return _plain(pico, 12)


def usd_json(nano: int) -> msgspec.Raw:
    """Nano-USD as a JSON number that loses nothing: a raw fragment for msgspec's encoder."""
    return msgspec.Raw(_plain(nano, 9).encode())


def usd_or_none(nano: int | None) -> msgspec.Raw | None:
    """The same of an amount that may not be there."""
    return None if nano is None else usd_json(nano)


def per_million_json(pico: int) -> msgspec.Raw:
    """A per-token price as a JSON number in USD per million tokens."""
    return msgspec.Raw(_plain(pico, 6).encode())


def _scaled(amount: Decimal | int, scale: int, decimals: int, ceiling: int, unit: str) -> int:
    value = Decimal(amount)
    if not value.is_finite():
        raise MoneyError("must be a finite number")
    if value < 0:
        raise MoneyError("must not be negative")
    if value > ceiling:
        raise MoneyError(f"must be at most {ceiling} {unit}")
    try:
        scaled = _EXACT.multiply(value, Decimal(scale))
        if scaled == scaled.to_integral_value():
            return int(scaled)
    except Inexact:
        pass
    raise MoneyError(f"must have at most {decimals} decimals")


def _plain(value: int, decimals: int) -> str:
    sign = "-" if value < 0 else ""
    whole, fraction = divmod(abs(value), 10**decimals)
    if not fraction:
        return f"{sign}{whole}"
    return f"{sign}{whole}.{fraction:0{decimals}d}".rstrip("0")
