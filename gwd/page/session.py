"""The cookie of a session, and the token that its forms carry."""

import hmac
from http.cookies import CookieError, SimpleCookie
from typing import Final

from gwd.api.node import Node
from gwd.keys import secret

OWN_DEVICE_S: Final = 7 * 86_400
THEME_S: Final = 365 * 86_400
THEMES: Final = ("system", "light", "dark")


def is_https(node: Node) -> bool:
    """Whether browsers reach the page by https."""
    return node.base_url.startswith("https:")


def name(node: Node) -> str:
    """Browsers send a cookie to every port of a host, so over plain http the port is part of its name."""
    return "__Host-gwd" if is_https(node) else f"gwd_{node.settings.server.port}"


def set_cookie(node: Node, token: str, *, own_device: bool) -> str:
    """The header that signs in; without an age it ends with the browser."""
    age = f"; Max-Age={OWN_DEVICE_S}" if own_device else ""
    return f"{name(node)}={token}; Path=/; HttpOnly; SameSite=Lax{age}{_secure(node)}"


def end_cookie(node: Node) -> str:
    """The header that signs out."""
    return f"{name(node)}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0{_secure(node)}"


def theme_cookie(node: Node, theme: str) -> str:
    return f"theme={theme}; Path=/; HttpOnly; SameSite=Lax; Max-Age={THEME_S}{_secure(node)}"


def read(header: str | None) -> dict[str, str]:
    """The cookies of a request; none of a header that is no list of cookies."""
    try:
        return {each.key: each.value for each in SimpleCookie(header or "").values()}
    except CookieError:
        return {}


def form_token(token: str, pepper: bytes) -> str:
    """What forms of this session carry: it follows from the cookie and cannot be guessed without it."""
    return secret.digest(f"form:{token}", pepper).hex()[:40]


def is_form_token(sent: str, token: str, pepper: bytes) -> bool:
    return hmac.compare_digest(sent.encode(), form_token(token, pepper).encode())


def _secure(node: Node) -> str:
    return "; Secure" if is_https(node) else ""
