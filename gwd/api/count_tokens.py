"""POST /messages/count_tokens and models/…:countTokens: our own estimate of a prompt, free and no generation.

Agents fire a dozen of these at once to draw their context, so they have a rate bucket of their own of the same size.
"""

from sanic import HTTPResponse, Request

from gwd.api import headers as response_headers
from gwd.api.access import INFERENCE
from gwd.api.auth import check_access, count_auth_failure
from gwd.api.headers import JSON
from gwd.api.inference import in_reserve, parsed_body, rate_limited
from gwd.api.node import Node
from gwd.core.errors import GatewayError
from gwd.core.ids import mint
from gwd.dialects.extensions import with_model
from gwd.dialects.gemini import Gemini
from gwd.dialects.messages import Messages
from gwd.keys.rate_limit import Refused, count_tokens_bucket
from gwd.pricing.estimate import estimate_prompt


async def count(
    request: Request, node: Node, dialect: Messages | Gemini, address: str
) -> HTTPResponse:
    """The count, or an error in the dialect's envelope."""
    request_id = mint("req_")
    headers = response_headers.base(request_id)
    try:
        row = await node.authenticator.find(request.headers, address)
        caller = check_access(row, INFERENCE, now_us=node.clock.now_us())
        counted = node.limiter.admit(
            count_tokens_bucket(caller.family_id),
            caller.rate_limit_per_minute,
            node.clock.monotonic_s(),
        )
        if isinstance(counted, Refused):
            raise rate_limited(counted)
        node.load.require_ease(in_reserve=in_reserve(request))
        parsed = await parsed_body(request, node, dialect.parse_count)
        parsed = with_model(parsed, row.policy.text_model)
        await node.state.model(parsed.models[0], caller.organization_id, row.policy)
        tokens = await node.line.offload.run(parsed.body_bytes, estimate_prompt, parsed)
        return HTTPResponse(dialect.count(tokens), 200, headers, JSON)
    except GatewayError as error:
        count_auth_failure(node.counters, error)
        headers |= response_headers.of_error(error)
        return HTTPResponse(dialect.error(error, request_id), error.status, headers, JSON)
