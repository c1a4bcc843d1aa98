"""Where a call to Gemini goes."""

from typing import Final
from urllib.parse import quote

from gwd.core.target import Target
from gwd.vendors.call import url_for

API_VERSION: Final = "v1beta"


def model_path(target: Target) -> str:
    """The model as the vendor names it: `models/…`, unless the catalog names another collection."""
    name = target.upstream_model.strip("/")
    return name if "/" in name else f"models/{name}"


def method_url(target: Target, method: str, *, streams: bool = False) -> str:
    """The address of one of the model's methods. Without `alt=sse` a stream would be one big JSON array."""
    path = f"{quote(model_path(target), safe='/-._~@')}:{method}"
    query = "alt=sse" if streams else ""
    return url_for(target.base_url, path, version=API_VERSION, query=query)
