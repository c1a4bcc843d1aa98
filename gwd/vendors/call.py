"""Where a call to a vendor goes and what headers it carries, the same way for every format."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from gwd.core.target import Target
from gwd.core.vendor_format import Auth

_VERSION: Final = re.compile(r"v\d+[a-z0-9]*")
# The header that carries the credential, and what stands before the credential in it.
_HEADERS: Final[Mapping[Auth, tuple[str, str]]] = {
    "bearer": ("authorization", "Bearer "),
    "api-key": ("api-key", ""),
    "x-api-key": ("x-api-key", ""),
    "x-goog-api-key": ("x-goog-api-key", ""),
}


@lru_cache(maxsize=1_024)
def url_for(base_url: str, path: str, *, version: str = "v1") -> str:
    """`path` (such as `chat/completions`) under a base URL, with exactly one version segment and no doubled slash.

    A base that names any version (`/v1`, `/api/paas/v4`, `/v1beta/openai`) keeps it; one without gets `version`.
    A base that already ends in `path` is taken as the whole address.
    """
    scheme, host, base_path, query, _ = urlsplit(base_url.strip())
    segments = [segment for segment in base_path.split("/") if segment]
    wanted = path.split("/")
    if segments[-len(wanted) :] == wanted:
        wanted = []
    elif not any(_VERSION.fullmatch(segment) for segment in segments):
        wanted = [version, *wanted]
    return urlunsplit((scheme, host, "/" + "/".join([*segments, *wanted]), query, ""))


def headers_for(target: Target) -> dict[str, str]:
    """Content type, credential, and the provider's own extra headers."""
    return {
        "content-type": "application/json",
        "accept": "application/json",
        **credential_header(target),
        **configured_headers(target),
    }


def credential_header(target: Target) -> dict[str, str]:
    """The one header with the credential, as the target's provider takes it; none where there is nothing to send."""
    header = _HEADERS.get(target.auth)
    if header is None or not target.credential.secret:
        return {}
    name, scheme = header
    return {name: f"{scheme}{target.credential.secret}"}


def configured_headers(target: Target) -> dict[str, str]:
    """The provider's own extra headers, in lower case; what no header can carry is left out."""
    return {
        name.lower(): value
        for name, value in target.headers.items()
        if value.isascii() and value.isprintable()
    }
