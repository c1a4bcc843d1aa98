"""A receiver of gwd's webhooks: checks that a delivery is genuine and fresh, and prints each event once.

    WEBHOOK_SECRET=whsec_… python3 webhook_receiver.py [PORT]

Needs nothing but Python. It listens on 127.0.0.1, port 9000 unless another is given, behind a proxy that does TLS.
gwd waits 15 seconds for an answer: work that takes longer goes from `handle` into a queue of your own.
"""

import hashlib
import hmac
import json
import os
import sys
import time
from collections import OrderedDict
from http.server import BaseHTTPRequestHandler, HTTPServer

TOLERANCE_S = 300
MAX_BODY = 1_000_000
REMEMBERED = 10_000
SECRETS = [secret for secret in os.environ.get("WEBHOOK_SECRET", "").split(",") if secret]

seen: "OrderedDict[str, None]" = (
    OrderedDict()
)  # the newest event ids; keep them in a database to survive a restart


def is_genuine(secret: str, timestamp: str, body: bytes, signature: str) -> bool:
    """Whether gwd signed exactly these bytes in the last five minutes; one of several signatures is enough."""
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > TOLERANCE_S:
        return False
    signed = timestamp.encode() + b"." + body
    expected = b"v1=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest().encode()
    given = [one.strip().encode() for one in signature.split(",")]
    return any(hmac.compare_digest(expected, one) for one in given)


def handle(event: dict) -> None:
    """What is done with an event. It may come twice, after a restart or an answer that was lost."""
    print(event["severity"], event["type"], event["title"], sep="   ", flush=True)


class Receiver(BaseHTTPRequestHandler):
    timeout = 10

    def do_POST(self) -> None:
        length = self.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > MAX_BODY:
            return self.answer(413)
        body = self.rfile.read(int(length))
        stamp, signature = (
            self.headers.get(f"x-gw-{name}", "") for name in ("timestamp", "signature")
        )
        if not any(is_genuine(secret, stamp, body, signature) for secret in SECRETS):
            return self.answer(401)
        event = json.loads(body)
        if event["id"] not in seen:  # the same in every delivery of an event
            handle(event)
            seen[event["id"]] = None
            if len(seen) > REMEMBERED:
                seen.popitem(last=False)
        return self.answer(204)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()


if __name__ == "__main__":
    if not SECRETS:
        sys.exit("WEBHOOK_SECRET is missing: the signing secret that `gwctl webhook add` printed")
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 9000
    with HTTPServer(("127.0.0.1", port), Receiver) as server:
        print(f"listening on http://127.0.0.1:{server.server_port}", file=sys.stderr, flush=True)
        server.serve_forever()
