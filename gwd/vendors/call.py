"""Where a call to a vendor goes and what headers it carries, the same way for every format."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from gwd.core.target import Service, Target
from gwd.core.vendor_format import Auth

_VERSION: Final = re.compile(r"v\d+[a-z0-9]*")
_VERSION_FIELD: Final = "api-version"
_CALLS: Final = (("chat", "completions"), ("responses",), ("embeddings",), ("messages",))
# The header that carries the credential, and what stands before the credential in it.
_HEADERS: Final[Mapping[Auth, tuple[str, str]]] = {
    "bearer": ("authorization", "Bearer "),
    "api-key": ("api-key", ""),
    "x-api-key": ("x-api-key", ""),
    "x-goog-api-key": ("x-goog-api-key", ""),
}


@lru_cache(maxsize=1_024)
def url_for(
    base_url: str,
    path: str,
    *,
    version: str = "v1",
    version_is_last: bool = False,
    query: str = "",
) -> str:
    """`path` (such as `chat/completions`) under a base URL, with one version at most and no doubled slash.

    A base that names any version (`/v1`, `/api/paas/v4`, `/v1beta/openai`, `?api-version=…`) keeps it; one without gets
    `version`. Where `version_is_last`, what only looks like one further ahead in the base's path is none. A base that
    is the whole address of a call stands for what is before the path of that call. The base's own query is kept, and
    `query` is put behind it.
    """
    scheme, host, base_path, base_query, _ = urlsplit(base_url.strip())
    segments = [segment for segment in base_path.split("/") if segment]
    called = next((call for call in _CALLS if tuple(segments[-len(call) :]) == call), ())
    segments = segments[: len(segments) - len(called)]
    named = segments[-1:] if version_is_last else segments
    is_versioned = any(_VERSION.fullmatch(segment) for segment in named) or any(
        field.partition("=")[0].lower() == _VERSION_FIELD for field in base_query.split("&")
    )
    if not called and not is_versioned:
        segments.append(version)
    whole_query = "&".join(filter(None, (base_query, query)))
    return urlunsplit((scheme, host, "/".join(["", *segments, path]), whole_query, ""))


def headers_for(target: Target) -> dict[str, str]:
    """Content type, credential, and the provider's own extra headers."""
    headers = {
        "content-type": "application/json",
        "accept": "application/json",
        **credential_header(target),
    }
    return headers | configured_headers(target) if target.headers else headers


def credential_header(target: Target | Service) -> dict[str, str]:
    """The one header with the credential, as the target's provider takes it; none where there is nothing to send."""
    header = _HEADERS.get(target.auth)
    if header is None or not target.credential.secret:
        return {}
    name, scheme = header
    return {name: f"{scheme}{target.credential.secret}"}


def configured_headers(target: Target | Service) -> dict[str, str]:
    """The provider's own extra headers, in lower case; what no header can carry is left out."""
    return {
        name.lower(): value
        for name, value in target.headers.items()
        if value.isascii() and value.isprintable()
    }
