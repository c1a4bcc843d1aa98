"""Where a call to an OpenAI-format server goes and what headers it carries."""

import re
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from gwd.core.target import Target

_VERSION: Final = re.compile(r"v\d+[a-z0-9]*")


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
    headers = {"content-type": "application/json", "accept": "application/json"}
    if target.credential.secret:
        headers["authorization"] = f"Bearer {target.credential.secret}"
    for name, value in target.headers.items():
        if value.isascii() and value.isprintable():
            headers[name.lower()] = value
    return headers
