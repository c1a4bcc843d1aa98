"""What a vendor quotes of our call: neither the credential nor the provider's header values reach anybody.

Credentials that look like one are taken out of a vendor's text by their look (gwd.vendors.faults); here they are taken
out because we know them, whatever they look like.
"""

from typing import Final

import msgspec

from gwd.core.errors import Fault
from gwd.core.target import Service, Target

HIDDEN: Final = "***"
LEAST_LENGTH: Final = 8
"""Shorter values are words: hiding those would garble the vendor's text and protect nothing."""


def without_secrets(fault: Fault, target: Target | Service) -> Fault:
    """The fault with every secret of the target's calls hidden, and the beginning of one that was cut off."""
    message, code = fault.message, fault.code
    for secret in _secrets(target):
        message = _hidden(message, secret)
        code = code and _hidden(code, secret)
    if message == fault.message and code == fault.code:
        return fault
    return msgspec.structs.replace(fault, message=message, code=code)


def body_without_secrets(body: bytes, target: Target | Service) -> bytes:
    """The vendor's error as it came, before anything is looked for in it or cut off."""
    for secret in _secrets(target):
        body = body.replace(secret.encode(), HIDDEN.encode())
    return body


def _secrets(target: Target | Service) -> list[str]:
    """Longest first: one may hold another."""
    known = {target.credential.secret, *target.headers.values()}
    return sorted((text for text in known if len(text) >= LEAST_LENGTH), key=len, reverse=True)


def _hidden(text: str, secret: str) -> str:
    text = text.replace(secret, HIDDEN)
    for length in range(len(secret) - 1, LEAST_LENGTH - 1, -1):
        if text.endswith(secret[:length]):
            return text[:-length] + HIDDEN
    return text
