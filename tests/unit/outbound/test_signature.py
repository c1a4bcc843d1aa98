"""The signature is the one that receivers recompute: HMAC-SHA256 over timestamp, a dot, and the exact bytes."""

import hashlib
import hmac

from gwd.outbound.signature import headers, new_secret, signature


def test_a_receiver_recomputes_it_from_timestamp_dot_and_raw_body() -> None:
    body = b'{"id":"evt_1","data":{}}'
    sent = headers("alert.test", "dlv_1", "whsec_secret", 1_790_000_000, body)
    expected = hmac.new(b"whsec_secret", b"1790000000." + body, hashlib.sha256).hexdigest()
    assert sent["x-gw-signature"] == f"v1={expected}"
    assert sent["x-gw-timestamp"] == "1790000000"
    assert sent["x-gw-event"] == "alert.test"
    assert sent["x-gw-delivery-id"] == "dlv_1"
    assert sent["content-type"] == "application/json"


def test_a_known_value() -> None:
    assert signature("whsec_a", 1, b"{}") == (
        "v1=7aaed73a0f45f657eacd5c9b580562745d6023b1e3e6d17dce076b81940aa046"
    )


def test_secrets_are_long_and_never_the_same() -> None:
    first, second = new_secret(), new_secret()
    assert first != second
    assert first.startswith("whsec_")
    assert len(first) == 49
