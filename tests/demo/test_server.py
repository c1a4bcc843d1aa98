"""The listener and its record: several side by side, calls kept, callers that leave, many at once."""

import asyncio

import httpx
import pytest
from sanic import Request, Sanic
from sanic.response import HTTPResponse, text

from gwd.demo import ModelTraits, SimulatedVendor
from tests.demo.requests import BODIES, PATHS, chat, events, messages
from tests.vendor import StrictVendor


async def test_several_vendors_beside_another_app():
    app: Sanic = Sanic("beside-the-vendor", configure_logging=False)

    @app.get("/")
    async def hello(request: Request) -> HTTPResponse:
        return text("hello")

    server = await app.create_server(host="127.0.0.1", port=0, return_asyncio_server=True)
    assert server is not None
    await server.startup()
    await server.start_serving()
    port = server.server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    async with (
        StrictVendor() as one,
        StrictVendor(models=["other"]) as two,
        httpx.AsyncClient(headers={"authorization": "Bearer k"}) as http,
    ):
        assert one.url != two.url
        assert (await http.get(f"http://127.0.0.1:{port}/")).text == "hello"
        assert (await http.post(one.url + PATHS["chat"], json=chat())).status_code == 200
        assert (await http.post(two.url + PATHS["chat"], json=chat())).status_code == 404
        other = {**chat(), "model": "other"}
        assert (await http.post(two.url + PATHS["chat"], json=other)).status_code == 200
        assert (len(one.calls), len(two.calls)) == (1, 2)
        await two.stop()
        assert (await http.post(one.url + PATHS["chat"], json=chat())).status_code == 200
    await server.close()
    Sanic.unregister_app(app)


async def test_stopped_vendor_answers_no_more_and_can_start_again():
    vendor = StrictVendor()
    async with httpx.AsyncClient(headers={"authorization": "Bearer k"}) as http:
        for _ in range(2):
            async with vendor:
                assert (await http.post(vendor.url + PATHS["chat"], json=chat())).is_success
            with pytest.raises(httpx.ConnectError):
                await http.post(vendor.url + PATHS["chat"], json=chat())


async def test_stop_ends_stalled_calls_without_blaming_the_caller():
    async with StrictVendor() as vendor, httpx.AsyncClient() as http:
        vendor.script.next("stall_before_headers")
        waiting = asyncio.ensure_future(http.post(vendor.url + PATHS["chat"], json=chat()))
        await vendor.calls.wait_for(1)
        await vendor.stop()
        with pytest.raises(httpx.TransportError):
            await waiting
        assert not vendor.calls.last.closed_early


async def test_calls_are_recorded_as_they_came(http: httpx.AsyncClient, vendor: SimulatedVendor):
    await http.post(
        PATHS["messages"] + "?beta=true",
        json=messages(),
        headers=[("X-Thing", "a"), ("x-thing", "b")],
    )
    call = vendor.calls.last
    assert (call.method, call.path, call.query) == ("POST", "/v1/messages", {"beta": "true"})
    assert call.headers["x-thing"] == "a, b"
    assert call.headers["authorization"] == "Bearer up-key"
    assert call.body == messages()
    assert (call.model, call.status, call.closed_early) == ("claude-demo", 200, False)
    await http.post(PATHS["chat"], content=b"[1]")
    assert (vendor.calls.last.body, vendor.calls.last.raw) == (None, b"[1]")
    await http.get("/v1/nothing")
    assert (vendor.calls.last.path, vendor.calls.last.status) == ("/v1/nothing", 404)
    assert len(vendor.calls.on("/v1/messages")) == len(vendor.calls.of("claude-demo")) == 1


@pytest.mark.parametrize("form", BODIES)
async def test_caller_that_leaves_is_noticed(
    http: httpx.AsyncClient, vendor: SimulatedVendor, form: str
):
    vendor.script.next("event_delay_s=0.02 tokens=500")
    async with http.stream("POST", PATHS[form], json=BODIES[form](stream=True)) as answer:
        async for _ in answer.aiter_raw():
            break
    await vendor.calls.all_finished(timeout_s=2)
    assert vendor.calls.last.closed_early


async def test_keys_when_given_are_the_only_ones(vendor: SimulatedVendor):
    async with StrictVendor(keys=["right"]) as locked, httpx.AsyncClient() as http:
        for path, body, header in (
            (PATHS["chat"], chat(), {"authorization": "Bearer {}"}),
            (PATHS["messages"], messages(), {"x-api-key": "{}"}),
        ):
            version = {"anthropic-version": "2023-06-01"}
            for key, status in (("right", 200), ("wrong", 401)):
                headers = {name: value.format(key) for name, value in header.items()}
                answer = await http.post(locked.url + path, json=body, headers=headers | version)
                assert answer.status_code == status
                assert "wrong" not in answer.text


async def test_models_can_be_described():
    traits = ModelTraits(name="short", max_output=10, context_length=50)
    async with StrictVendor(models=[traits]) as vendor, httpx.AsyncClient() as http:
        http.headers["authorization"] = "Bearer k"
        capped = {**chat(max_tokens=11), "model": "short"}
        answer = await http.post(vendor.url + PATHS["chat"], json=capped)
        assert "at most 10 completion tokens" in answer.text
        long = {**chat("word " * 60), "model": "short"}
        answer = await http.post(vendor.url + PATHS["chat"], json=long)
        assert answer.json()["error"]["code"] == "context_length_exceeded"


async def test_two_hundred_streams_at_once(vendor: SimulatedVendor):
    limits = httpx.Limits(max_connections=200)
    async with httpx.AsyncClient(base_url=vendor.url, limits=limits, timeout=30) as http:
        http.headers["authorization"] = "Bearer k"
        answers = await asyncio.gather(
            *(http.post(PATHS["chat"], json=chat(f"Number {n}", stream=True)) for n in range(200))
        )
    assert {answer.status_code for answer in answers} == {200}
    assert all(events(answer.content)[-1] == ("", "[DONE]") for answer in answers)
    identifiers = {events(answer.content)[0][1]["id"] for answer in answers}
    assert len(identifiers) == len(vendor.calls) == 200
