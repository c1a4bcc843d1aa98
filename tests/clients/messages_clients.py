"""What the clients of the messages dialect share: their base address, and models of open servers to talk to."""

from typing import Final

from tests.support.node import PARAMETERS, PRICES, Gateway

CLAUDE: Final = "demo/claude"
CLAUDE_NEXT: Final = "demo/claude-next"
PLAIN: Final = "demo/plain"  # does not reason, and its server refuses to be asked to
RESPONSES: Final = "demo/responses"
OPEN: Final = "demo/open"  # shows its reasoning, unsigned
REASONING: Final = ("reasoning", "reasoning_effort", "include_reasoning")


def base_url(gateway: Gateway) -> str:
    """The address that clients of this dialect take: they add `/v1/messages` themselves."""
    return gateway.base_url.removesuffix("/v1")


async def add_open_models(gateway: Gateway) -> None:
    """The two models above on the chat provider of the shared catalog."""
    plain = [word for word in PARAMETERS if word not in REASONING]
    await gateway.add_model(PLAIN, pricing=PRICES, parameters=plain)
    await gateway.add_endpoint(PLAIN, "openai-chat", "gpt-demo", max_completion_tokens=16_384)
    await gateway.add_model(OPEN, pricing=PRICES)
    await gateway.add_endpoint(OPEN, "openai-chat", "open-demo", max_completion_tokens=16_384)
