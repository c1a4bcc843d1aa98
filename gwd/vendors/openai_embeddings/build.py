"""A request for vectors as one call: floats are always asked for, whatever the client wants."""

from typing import Any

import msgspec

from gwd.core.request import Embed, Request
from gwd.core.target import Target, UpstreamCall
from gwd.vendors.call import headers_for, url_for
from gwd.vendors.openai_chat.user import user_for
from gwd.vendors.openai_embeddings.format import FORMAT


def build(request: Request, target: Target) -> UpstreamCall:
    """One batch with everything in it."""
    assert isinstance(request.body, Embed)
    embed = request.body
    body: dict[str, Any] = {
        "model": target.upstream_model,
        "input": embed.inputs[0] if len(embed.inputs) == 1 else embed.inputs,
        "encoding_format": "float",
    }
    if embed.dimensions is not None:
        body["dimensions"] = embed.dimensions
    user = user_for(request.sender)
    if user:
        body["user"] = user
    if request.family == FORMAT.family:
        for name, value in (request.extras or {}).items():
            body.setdefault(name, value)
    refused = tuple(
        name for name in target.flags.refused_fields if body.pop(name, None) is not None
    )
    return UpstreamCall(
        url=url_for(target.base_url, "embeddings"),
        headers=headers_for(target),
        body=msgspec.json.encode(body),
        stream=False,
        dropped=refused,
    )
