"""A node that reaches its vendors through a proxy: whole and streamed answers, and a proxy that is not there."""

from pathlib import Path

from tests.cases.caserunner.ports import free_port
from tests.flows.frames import frames_of, text_of
from tests.support.node import open_gateway
from tests.support.proxy import Proxy


async def test_answers_come_through_the_proxy(tmp_path: Path) -> None:
    async with (
        Proxy().running() as proxy,
        open_gateway(tmp_path, environment={"GWD_UPSTREAM_PROXY": proxy.url}) as gateway,
    ):
        whole = await gateway.chat("hello")
        assert whole.status_code == 200
        assert whole.json()["choices"][0]["message"]["content"]
        streamed = await gateway.chat("hello", stream=True)
        assert text_of(frames_of(streamed.text))
        assert proxy.paths == ["/v1/chat/completions"] * 2


async def test_a_proxy_that_is_not_there_is_a_network_failure(tmp_path: Path) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    async with open_gateway(tmp_path, environment={"GWD_UPSTREAM_PROXY": nobody}) as gateway:
        failed = await gateway.chat("hello")
        assert failed.status_code in (502, 503)
        assert await gateway.balance() == 10
