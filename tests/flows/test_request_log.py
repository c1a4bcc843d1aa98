"""The log of requests: a line for each that has a record, with the record's figures."""

import json
import logging
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from gwd.demo import Behaviour
from gwd.node.log import JsonLine
from tests.support.node import Gateway, open_gateway

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "logs.schema.json").read_text())


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    form = JsonLine()
    found = [json.loads(form.format(r)) for r in caplog.records if r.name == "gwd.requests"]
    for line in found:
        jsonschema.validate(line, SCHEMA)
    return found


async def test_each_request_has_one_line_with_what_its_record_says(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gwd.requests")
    async with open_gateway(tmp_path, environment={"GWD_LOGGING_REQUESTS": "true"}) as gateway:
        for stream in (False, True):
            await _holds_for(gateway, caplog, stream=stream)
        gateway.vendor.script.next(Behaviour(status=500))
        assert (await gateway.chat()).status_code == 502
        assert (await gateway.chat(model="demo/nothing")).status_code == 404
        assert (await gateway.client.post("/chat/completions", content=b"{")).status_code == 400
        await gateway.at_rest()
        failed, unknown, broken = lines(caplog)
        assert (failed["status"], failed["error_code"]) == ("failed", "upstream_error")
        assert (failed["attempts"], failed["cost_nano"]) == (1, 0)
        assert (unknown["status"], unknown["error_code"]) == ("refused", "model_not_found")
        assert (broken["status"], broken["error_code"]) == ("refused", "invalid_json")
        caplog.clear()
        wrong = {"authorization": "Bearer gwi_" + "0" * 49}
        assert (await gateway.chat(headers=wrong)).status_code == 401
        assert lines(caplog) == []  # nobody's: it has no record


async def _holds_for(gateway: Gateway, caplog: pytest.LogCaptureFixture, *, stream: bool) -> None:
    reply = await gateway.chat("canary-question", stream=stream, user="canary-user")
    record = await gateway.generation(reply)
    await gateway.at_rest()
    (line,) = lines(caplog)
    assert "canary" not in json.dumps(line)
    assert line["generation_id"] == record["id"] == reply.headers["x-gw-generation-id"]
    assert line["request_id"] == reply.headers["x-request-id"]
    assert line["organization_id"] == await gateway.organization_id()
    assert (line["key_id"], line["model"]) == (gateway.key_id, "demo/chat")
    assert (line["status"], line["streamed"], line["attempts"]) == ("succeeded", stream, 1)
    assert line["tokens_prompt"] == record["tokens_prompt"]
    assert line["tokens_completion"] == record["tokens_completion"]
    assert line["cost_nano"] == round(record["total_cost"] * 10**9) > 0
    caplog.clear()


async def test_without_the_setting_there_is_none(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gwd.requests")
    assert (await gateway.chat()).status_code == 200
    await gateway.at_rest()
    assert lines(caplog) == []


async def test_a_log_that_fails_harms_no_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError("the log is gone")

    async with open_gateway(tmp_path, environment={"GWD_LOGGING_REQUESTS": "true"}) as gateway:
        monkeypatch.setattr(logging.getLogger("gwd.requests"), "info", fails)
        assert (await gateway.chat()).status_code == 200
        await gateway.at_rest()
    assert "could not be observed" in caplog.text
