"""A vendor quotes our call in its errors: the credential and the provider's headers reach nobody."""

from typing import Any

import pytest
import pytest_asyncio

from gwd.demo import Behaviour
from tests.support.node import PRICES, Gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRET = "0123456789abcdef/plain~looking"
HEADER = "tenant-7f3a9b"
ASK: dict[str, Any] = {"model": "quoting/model", "messages": [{"role": "user", "content": "x"}]}
QUOTE = f"token {SECRET} of {HEADER} is not enabled"

ROWS = {
    "in the message": Behaviour(status=400, message=QUOTE),
    "as the code": Behaviour(status=400, message="no", code=SECRET),
    "as the type": Behaviour(status=422, message="no", error_type=HEADER),
    "cut off": Behaviour(status=400, message="x" * 985 + SECRET),
    "as no JSON": Behaviour(status=400, body=QUOTE, content_type="text/plain"),
    "as no answer": Behaviour(body=QUOTE, content_type="text/plain"),
    "in a whole answer": Behaviour(
        body_bytes=f'{{"error": {{"message": "{QUOTE}", "code": "{SECRET}"}}}}'.encode(),
        content_type="application/json",
    ),
    "in a stream": Behaviour(
        body_bytes=b'data: {"choices": [{"index": 0, "delta": {"content": "Hi"}}]}\n\n'
        + f'data: {{"error": {{"message": "{QUOTE}", "code": "{SECRET}"}}}}\n\n'.encode(),
        content_type="text/event-stream",
    ),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module", autouse=True)
async def quoting(shared_node: Gateway) -> None:
    """A model whose vendor is called with a credential that looks like none, and a header of the provider."""
    fields = {"slug": "quoting", "name": "Quoting", "adapter": "openai_chat"}
    fields["base_url"] = shared_node.vendor.openai_url
    headers = {"x-tenant": HEADER}
    await shared_node.manage("POST", "/catalog/providers", {**fields, "headers": headers})
    await shared_node.manage("POST", "/catalog/credentials", {"provider": "quoting", "key": SECRET})
    await shared_node.add_model("quoting/model", pricing=PRICES)
    await shared_node.add_endpoint("quoting/model", "quoting", "quoting-demo")


def holds_secret(text: str) -> bool:
    return SECRET[:10] in text or HEADER in text


@pytest.mark.parametrize("row", ROWS)
async def test_no_client_record_or_probe_sees_what_a_vendor_quotes(
    node: Gateway, stream: bool, row: str
) -> None:
    node.vendor.script.next(ROWS[row], model="quoting-demo")
    headers = {"x-gw-metadata": "enabled"}
    reply = await node.client.post(
        "/chat/completions", json={**ASK, "stream": stream}, headers=headers
    )
    assert node.vendor.calls.last.headers["x-tenant"] == HEADER
    assert "error" in reply.text
    assert not holds_secret(reply.text)
    record = await node.generation(reply)
    assert record["error"] is not None
    assert not holds_secret(str(record))


@pytest.mark.parametrize("row", ["in the message", "as the code", "as no answer"])
async def test_no_probe_shows_what_a_vendor_quotes(node: Gateway, row: str) -> None:
    node.vendor.script.next(ROWS[row], model="quoting-demo")
    refused = await node.manage("POST", "/catalog/providers/quoting/test", status=502)
    assert not holds_secret(str(refused))
