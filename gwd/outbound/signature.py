"""The signature of what we call out: HMAC-SHA256 over timestamp, a dot, and the exact bytes sent."""

import hmac
from hashlib import sha256
from typing import Final

from gwd.core.ids import random_base62

PREFIX: Final = "whsec_"


def new_secret() -> str:
    """A signing secret as its owner sees it, once; the key of the HMAC is this text with its prefix."""
    return PREFIX + random_base62(43)


def signature(secret: str, timestamp_s: int, body: bytes) -> str:
    """The value of X-GW-Signature."""
    signed = str(timestamp_s).encode("ascii") + b"." + body
    return "v1=" + hmac.new(secret.encode("utf-8"), signed, sha256).hexdigest()


def headers(
    event: str, delivery_id: str, secret: str, timestamp_s: int, body: bytes, *, before: str = ""
) -> dict[str, str]:
    """The headers of one signed call; every try is signed anew, because receivers refuse old timestamps.

    `before` is the secret that this one replaces, while both are good: its signature stands behind a comma.
    """
    signed = signature(secret, timestamp_s, body)
    if before:
        signed += f",{signature(before, timestamp_s, body)}"
    return {
        "content-type": "application/json",
        "x-gw-event": event,
        "x-gw-delivery-id": delivery_id,
        "x-gw-timestamp": str(timestamp_s),
        "x-gw-signature": signed,
    }
