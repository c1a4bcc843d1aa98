"""Which upstream client a node uses."""

from gwd.upstream.base import Timeouts, Upstream
from gwd.upstream.http_client import HttpClient


def client_for(timeouts: Timeouts, *, proxy: str, ca_file: str) -> Upstream:
    """The gateway's own client, or the one that can speak through `proxy`. Empty is none."""
    if not proxy:
        return HttpClient(timeouts, ca_file=ca_file or None)
    from gwd.upstream.proxied_client import ProxiedClient

    return ProxiedClient(timeouts, proxy=proxy, ca_file=ca_file or None)
