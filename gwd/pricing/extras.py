"""Which priced extras of a request an endpoint is sold, the dearest they can make it, and what is billed of them.

One rule of belief for hold and bill: a vendor can give what was sent on or less, or what its account's settings choose
where the request leaves the choice to it. What lies above that is not billed, so a hold that covers it covers the bill.
"""

from collections.abc import Mapping
from typing import Any, Final

from gwd.core.cost import Price
from gwd.core.extras import (
    ANY,
    AT_LIST_PRICE,
    FIELDS,
    ONE,
    SEARCH,
    SEARCH_FIELDS,
    SEARCHES,
    TOOLS,
    Applied,
    Factor,
    Given,
    Sold,
    carries,
    hosted_tools,
    is_free,
    tool_kind,
)
from gwd.core.request import Generate, Request
from gwd.core.usage import MAX_COUNT, count_of
from gwd.core.vendor_format import VendorFormat

_NOTHING: Final = Sold()
_PLAIN: Final = Applied()
_UNKNOWN: Final = Given()
_SERVERS: Final = "mcp_servers"
_TOOLSET: Final = "mcp_toolset"
_SAME: Final = {"fast": "priority", "priority": "fast"}


def sell(request: Request, format_: VendorFormat, price: Price) -> Sold:
    """What of the request's priced extras an endpoint of this format and price is sent."""
    extras = request.extras
    if not (extras or request.hosted_tools or request.vendor_headers):
        return _NOTHING
    values: dict[str, str] = {}
    refused: list[str] = []
    searches = 0
    for name, value in (extras or {}).items():
        if name in FIELDS and name != TOOLS and value is not None:
            word = value if isinstance(value, str) and name in AT_LIST_PRICE else ANY
            if _has_price(price, name, word) and carries(format_, request.family, name):
                values[name] = word
            elif word not in AT_LIST_PRICE.get(name, ()):
                refused.append(name)
        elif name in SEARCH_FIELDS and value not in (None, False):
            if price.web_search_nano is not None and format_.family == request.family:
                # One question to such a server is one search, unless it counts them itself.
                values[name] = ANY
                searches = SEARCHES
            else:
                refused.append(name)
    hosted = hosted_tools(request)
    if not hosted:
        if not values and not refused:
            return _NOTHING
        return Sold(values=values, searches=searches, refused=tuple(refused))
    types = [str(tool.get("type")) for tool in hosted]
    sold = {
        type_
        for type_ in types
        if format_.family == request.family
        and _is_sold(tool_kind(type_), price, format_, has_servers=_SERVERS in values)
    }
    unsold = [type_ for type_ in types if type_ not in sold]
    limits = [_limit(tool) for tool in hosted if tool_kind(str(tool.get("type"))) == SEARCH]
    if limits and any(tool_kind(type_) == SEARCH for type_ in sold):
        searches += _bound_of_all(request) or sum(limits)
    return Sold(
        values=values,
        tools=tuple(type_ for type_ in types if type_ in sold),
        searches=min(searches, MAX_COUNT),
        refused=tuple(dict.fromkeys([*refused, *map(tool_kind, unsold)])),
        refused_tools=tuple(dict.fromkeys(unsold)),
    )


def leaves_no_tool(request: Request, sold: Sold) -> bool:
    """Whether every tool that the request names is one this endpoint does not run: it would be answered without."""
    body = request.body
    return bool(sold.refused_tools) and not sold.tools and not _own_tools(body)


def ceilings(price: Price, format_: VendorFormat, sold: Sold) -> dict[str, int]:
    """Per field the dearest factor that an answer may be billed at; a field that is not there is at the list price."""
    if not price.modifiers:
        return {}
    dearest: dict[str, int] = {}
    for field, factors in price.modifiers.items():
        sent = sold.values.get(field)
        if field == TOOLS:
            for type_ in sold.tools:
                kind = tool_kind(type_)
                dearest[f"{TOOLS}.{kind}"] = max(ONE, _factor(TOOLS, kind, factors) or ONE)
        elif sent is not None and sent != "auto":
            words = (sent, _SAME.get(sent, sent), *AT_LIST_PRICE.get(field, ()))
            possible = (_factor(field, word, factors) for word in words)
            dearest[field] = max(ONE, *(factor or ONE for factor in possible))
        elif field in format_.chosen_by_vendor:
            dearest[field] = max(
                ONE, *(factor for word, factor in factors.items() if word != ANY), ONE
            )
    return dearest


def applied(given: Given | None, price: Price, format_: VendorFormat, sold: Sold) -> Applied:
    """What the answer is billed beside the list price of its tokens: by the vendor's word, within what it can be.

    Where the vendor does not say what it gave, or calls it by a name without a price, it gave what was sent on.
    """
    if not price.modifiers and not sold.searches:
        return _PLAIN
    given = given or _UNKNOWN
    factors: dict[str, Factor] = {}
    for name, ceiling in ceilings(price, format_, sold).items():
        field, _, kind = name.partition(".")
        word, sent = (kind, kind) if kind else (given.values.get(field), sold.values.get(field))
        factor = _given(field, word, sent, price.modifiers[field])
        billed = min(factor.millionths, ceiling)
        if billed != ONE:
            factors[name] = Factor(value=factor.value, millionths=billed)
    searches = given.searches
    if searches is None:
        searches = format_.assumed_searches
    return Applied(factors=factors, searches=min(searches, sold.searches))


def unpriced(given: Given | None, price: Price, format_: VendorFormat, sold: Sold) -> bool:
    """Whether the vendor says it gave something dearer than the list price that nobody is billed for."""
    if given is None or (not given.searches and _costs_nothing(given.values)):
        return False
    billed = applied(given, price, format_, sold)
    if (given.searches or 0) > billed.searches:
        return True
    return any(
        word not in AT_LIST_PRICE.get(field, ())
        and field not in sold.values
        and word not in price.modifiers.get(field, {})
        for field, word in given.values.items()
    )


def _costs_nothing(values: Mapping[str, str]) -> bool:
    return all(word in AT_LIST_PRICE.get(field, ()) for field, word in values.items())


def _given(field: str, word: str | None, sent: str | None, factors: Mapping[str, int]) -> Factor:
    for said in (word, sent):
        if said and (said != "auto" or said in factors):
            known = factors.get(said)
            if known is None and said in AT_LIST_PRICE.get(field, ()):
                known = ONE
            if known is not None:
                return Factor(value=said, millionths=known)
    return Factor(value=word or sent or ANY, millionths=factors.get(ANY, ONE) if sent else ONE)


def _factor(field: str, word: str, factors: Mapping[str, int]) -> int | None:
    """The factor of a value: its own, 1 for what costs the list price, else that of any value."""
    if word in factors:
        return factors[word]
    return ONE if word in AT_LIST_PRICE.get(field, ()) else factors.get(ANY)


def _has_price(price: Price, field: str, word: str) -> bool:
    return _factor(field, word, price.modifiers.get(field, {})) is not None


def _is_sold(kind: str, price: Price, format_: VendorFormat, *, has_servers: bool) -> bool:
    if kind == SEARCH:
        return price.web_search_nano is not None
    if _has_price(price, TOOLS, kind):
        return True
    if kind == _TOOLSET:
        return has_servers
    return format_.has_free_tools and is_free(kind)


def search_limit(tool: Mapping[str, Any]) -> int | None:
    """The client's own bound of a search tool; None where it names none that counts."""
    limit = tool.get("max_uses")
    return limit if _is_limit(limit) else None


def _limit(tool: Mapping[str, Any]) -> int:
    limit = search_limit(tool)
    return SEARCHES if limit is None else limit


def _bound_of_all(request: Request) -> int:
    """The client's own bound on the calls of all tools its vendor runs; 0 where there is none."""
    limit = (request.extras or {}).get("max_tool_calls") if request.hosted_tools else None
    return int(limit) if limit is not None and _is_limit(limit) else 0


def _is_limit(value: object) -> bool:
    return bool(count_of(value))


def _own_tools(body: object) -> bool:
    return isinstance(body, Generate) and bool(body.tools)
