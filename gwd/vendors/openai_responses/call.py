"""Where a call to a responses server goes and what headers it carries."""

import re
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from gwd.core.target import Target

_VERSION: Final = re.compile(r"v\d+[a-z0-9]*")


def url_for(base_url: str) -> str:
    """`responses` under a base URL, with exactly one version segment and no doubled slash.

    A base that names any version keeps it, one without gets `/v1`; one that already ends in `responses` is whole.
    """
    scheme, host, base_path, query, _ = urlsplit(base_url.strip())
    segments = [segment for segment in base_path.split("/") if segment]
    if segments[-1:] != ["responses"]:
        if not any(_VERSION.fullmatch(segment) for segment in segments):
            segments.append("v1")
        segments.append("responses")
    return urlunsplit((scheme, host, "/" + "/".join(segments), query, ""))


def headers_for(target: Target, *, stream: bool) -> dict[str, str]:
    """Content type, credential, and the provider's own extra headers."""
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream" if stream else "application/json",
    }
    if target.credential.secret:
        headers["authorization"] = f"Bearer {target.credential.secret}"
    for name, value in target.headers.items():
        if value.isascii() and value.isprintable():
            headers[name.lower()] = value
    return headers
