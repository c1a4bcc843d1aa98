"""An endpoint of the catalog with a credential: where a call may go."""

from typing import Final

from gwd.catalog.snapshot import Endpoint, Model
from gwd.core.cost import Price
from gwd.core.extras import Sold
from gwd.core.target import Credential, Target

_NOTHING_SOLD: Final = Sold()


def target_of(
    model: Model,
    endpoint: Endpoint,
    credential: Credential,
    price: Price,
    sold: Sold = _NOTHING_SOLD,
) -> Target:
    """`sold` is what it is sent of a request's priced extras."""
    return Target(
        endpoint_id=endpoint.id,
        model=model.id,
        vendor=model.vendor,
        provider=endpoint.provider,
        provider_name=endpoint.provider_name,
        tag=endpoint.tag,
        format=endpoint.format,
        base_url=endpoint.base_url,
        auth=endpoint.auth,
        headers=endpoint.headers,
        upstream_model=endpoint.upstream_model,
        context_length=endpoint.context_length,
        max_completion_tokens=endpoint.max_completion_tokens,
        default_max_tokens=model.default_max_tokens,
        supported_parameters=endpoint.supported_parameters,
        flags=endpoint.flags,
        price=price,
        credential=credential,
        sold=sold,
        input_modalities=frozenset(model.input_modalities),
    )
