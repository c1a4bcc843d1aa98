"""A request as its target is sent it: without the priced extras that the target has no price for."""

from typing import Any, Final

import msgspec

from gwd.core.extras import (
    SEARCH,
    SEARCHES,
    TOOLS,
    Sold,
    defines_inline,
    inline_tool,
    is_hosted,
    tool_kind,
)
from gwd.core.request import Extras, Generate, Message, Part, Request, TextPart
from gwd.core.target import Target, UpstreamCall
from gwd.pricing.extras import search_limit
from gwd.vendors.base import Adapter

_BETAS: Final = "anthropic-beta"
_FAST: Final = "fast-mode"


def build(adapter: Adapter, request: Request, target: Target) -> UpstreamCall:
    """The call of the request as it is sold here; what has no price is among what the call dropped, and so is what
    only vendors of the client's own format know.

    Raises InvalidRequest as the adapter does.
    """
    call = adapter.build(with_sold_extras(request, target.sold), target)
    foreign = request.own_fields if adapter.format.family != request.family else ()
    if not target.sold.refused and not foreign:
        return call
    dropped = tuple(dict.fromkeys([*call.dropped, *target.sold.refused, *foreign]))
    return msgspec.structs.replace(call, dropped=dropped)


def with_sold_extras(request: Request, sold: Sold) -> Request:
    """The request without what was not sold, and with a bound on the searches its vendor may run."""
    if not sold.refused and not sold.searches:
        return request
    extras = _extras(request, sold)
    body = request.body
    if isinstance(body, Generate):
        body = _without_lost_choice(body, request, sold)
        if defines_inline(request):
            body = msgspec.structs.replace(
                body, messages=tuple(_message(each, sold) for each in body.messages)
            )
    return msgspec.structs.replace(
        request,
        body=body,
        extras=extras or None,
        vendor_headers=_headers(request, sold),
    )


def _extras(request: Request, sold: Sold) -> Extras:
    extras = {
        name: value for name, value in (request.extras or {}).items() if name not in sold.refused
    }
    listed = extras.get(TOOLS)
    if request.family == "anthropic_messages" and isinstance(listed, list):
        kept = [
            _bounded(tool) for tool in listed if not is_hosted(tool) or tool["type"] in sold.tools
        ]
        if any(map(is_hosted, kept)):
            extras[TOOLS] = kept
        else:
            del extras[TOOLS]
    if request.hosted_tools and sold.searches:
        extras["max_tool_calls"] = sold.searches
    return extras


def _bounded(tool: dict[str, Any]) -> dict[str, Any]:
    """A search tool with the bound that credit is held for."""
    if tool_kind(str(tool.get("type"))) != SEARCH or search_limit(tool) is not None:
        return tool
    return {**tool, "max_uses": SEARCHES}


def _without_lost_choice(body: Generate, request: Request, sold: Sold) -> Generate:
    """A choice that forces a tool which is left out is none."""
    choice = body.tool_choice
    if choice is None or choice.mode != "named" or not sold.refused_tools:
        return body
    listed = (request.extras or {}).get(TOOLS)
    kept = {tool.name for tool in body.tools} | {
        tool.get("name")
        for tool in (listed if isinstance(listed, list) else ())
        if tool.get("type") in sold.tools
    }
    if choice.name in kept:
        return body
    return msgspec.structs.replace(
        body, tool_choice=msgspec.structs.replace(choice, mode="auto", name=None)
    )


def _message(message: Message, sold: Sold) -> Message:
    """A message without definitions of tools that are not sold, and with bounds in those that are."""
    parts: list[Part] = []
    for part in message.parts:
        tool = inline_tool(part)
        if tool is None or not isinstance(part, TextPart) or part.extras is None:
            parts.append(part)
        elif tool["type"] in sold.tools:
            change = {**part.extras["tool"], "definition": _bounded(tool)}
            parts.append(msgspec.structs.replace(part, extras={**part.extras, "tool": change}))
    return msgspec.structs.replace(message, parts=tuple(parts))


def _headers(request: Request, sold: Sold) -> dict[str, str]:
    """The betas without the one that only serves a speed which is not sold."""
    betas = request.vendor_headers.get(_BETAS)
    if betas is None or _FAST not in betas or "speed" in sold.values:
        return request.vendor_headers
    kept = [beta for beta in betas.split(",") if not beta.strip().startswith(_FAST)]
    headers = {name: text for name, text in request.vendor_headers.items() if name != _BETAS}
    return {**headers, _BETAS: ",".join(kept)} if kept else headers
