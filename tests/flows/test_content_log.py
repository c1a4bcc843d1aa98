"""What an organization has stored of its requests: only if it wants that, hidden and sealed, for a time, and then gone.

Canaries are looked for in every file of the node and in all that leaves it; the search itself is shown to see.
"""

import asyncio
import base64
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gwd.core.vitals import LITTLE_BYTES
from gwd.demo import Behaviour
from gwd.demo.behaviour import PlannedCall
from gwd.jobs.content_log import ContentLogJob
from gwd.node import backup
from tests.support.node import Gateway

ASKED = "canary-question-1a2b"
ANSWERED = "canary-answer-3c4d"
ARGUMENT = "canary-argument-5e6f"
RESULT = "canary-result-7a8b"
THOUGHT = "canary-thought-9c0d"
CALLED = "canary-called-1e2f"
CANARIES = (ASKED, ANSWERED, ARGUMENT, RESULT)
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


async def switch_on(gateway: Gateway, **fields: Any) -> Any:
    wanted = {"days": 7, **fields}
    changed = await gateway.manage("PATCH", "/organization/settings", {"content_log": wanted})
    return changed["data"]["content_log"]


async def content(gateway: Gateway, generation_id: str, *, status: int = 200) -> Any:
    """What is stored of a request, once it is."""
    await gateway.at_rest()
    reply = await gateway.operator.get("/generation/content", params={"id": generation_id})
    assert reply.status_code == status, reply.text
    return reply.json().get("data")


def conversation() -> list[dict[str, Any]]:
    """Two turns with a call of a tool and its result."""
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "look", "arguments": f'{{"at": "{ARGUMENT}"}}'},
    }
    return [
        {"role": "user", "content": ASKED},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": RESULT},
    ]


async def talk(gateway: Gateway) -> list[str]:
    """Requests in every way that an answer can take; their generations."""
    generations = []
    for model in ("demo/chat", "demo/claude", "demo/responses"):
        for stream in (False, True):
            gateway.vendor.script.next(Behaviour(text=ANSWERED))
            reply = await gateway.client.post(
                "/chat/completions",
                json={
                    "model": model,
                    "stream": stream,
                    "messages": conversation(),
                    "tools": [TOOL],
                },
            )
            assert reply.status_code == 200, reply.text
            assert stream or ANSWERED in reply.text
            generations.append(reply.headers["x-gw-generation-id"])
    await gateway.at_rest()
    return generations


def files(gateway: Gateway) -> dict[str, bytes]:
    """Every file of the node, its log of writes included."""
    directory = gateway.running.settings.directory
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.is_file() and path.suffix != ".ballast"
    }


def found_in(outputs: dict[str, bytes], words: tuple[str, ...]) -> list[str]:
    return [
        f"{word} in {name}"
        for name, content in outputs.items()
        for word in words
        if any(
            form in content
            for form in (
                word.encode(),
                base64.b64encode(word.encode()).rstrip(b"="),
                word.encode().hex().encode(),
            )
        )
    ]


async def think(gateway: Gateway) -> str:
    """A turn of a tool with signed reasoning, which is kept for the next turn of clients that drop it."""
    called = PlannedCall(name="look", arguments=f'{{"at": "{CALLED}"}}')
    gateway.vendor.script.next(Behaviour(reasoning=THOUGHT, calls=(called,)))
    asked = {
        "model": "demo/claude",
        "messages": [{"role": "user", "content": ASKED}],
        "tools": [TOOL],
        "reasoning": {"max_tokens": 1024},
        "max_tokens": 4000,
    }
    reply = await gateway.client.post("/chat/completions", json=asked)
    assert THOUGHT in reply.text, reply.text
    await gateway.at_rest()
    return reply.headers["x-gw-generation-id"]


async def test_nothing_is_stored_of_anybody_who_has_not_switched_it_on(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "gwd")
    generations = await talk(gateway)
    await think(gateway)
    metrics = await gateway.operator.get(gateway.base_url.removesuffix("/api/v1") + "/metrics")
    outputs = {**files(gateway), "log": caplog.text.encode(), "metrics": metrics.content}
    for path in ("/generations", "/audit", "/notifications/events", "/content-log"):
        outputs[path] = (await gateway.operator.get(path)).content
    assert found_in(outputs, (*CANARIES, THOUGHT, CALLED)) == []
    assert await gateway.store.read(_count) == 0
    await content(gateway, generations[0], status=404)
    assert found_in(outputs, (generations[0],))  # the search can see


async def test_what_was_asked_and_answered_is_read_back_and_lies_in_no_file(
    gateway: Gateway, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "gwd")
    await switch_on(gateway)
    generations = await talk(gateway)
    for generation_id in generations:
        stored = await content(gateway, generation_id)
        whole = msgspec.json.encode(stored).decode()
        assert all(word in whole for word in CANARIES), whole
        assert stored["cut"] == []
        assert stored["answer"]["parts"][-1] == {"type": "text", "text": ANSWERED}
        assert stored["request"]["body"]["messages"][0] == {
            "role": "user",
            "parts": [{"type": "text", "text": ASKED}],
        }
    made = backup.backup(gateway.running.settings, tmp_path / "copy.db")
    outputs = {**files(gateway), "backup": made.path.read_bytes(), "log": caplog.text.encode()}
    assert found_in(outputs, CANARIES) == []
    read = [
        line
        for line in (await gateway.manage("GET", "/audit?limit=100"))["data"]
        if line["action"] == "content_log.read"
    ]
    assert {line["subject_id"] for line in read} == set(generations)


def _count(connection: Any) -> int:
    return int(connection.row("SELECT COUNT(*) FROM content_log")[0])


async def test_what_is_to_be_hidden_is_nowhere(gateway: Gateway) -> None:
    """In texts, in the arguments of calls however they are escaped, in numbers, in the answer, across its pieces."""
    await switch_on(gateway, patterns=["MRN-######", "project-*"])
    secret = ("ada@example.com", "4111 1111 1111 1111", "MRN-123456", "project-zeus")
    arguments = '{"to": "ada\\u0040example.com", "card": 4111111111111111, "MRN-123456": ["x"]}'
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": arguments}}
    for stream in (False, True):
        gateway.vendor.script.next(Behaviour(text=f"so {' and '.join(secret)}."))
        reply = await gateway.client.post(
            "/chat/completions",
            json={
                "model": "demo/chat",
                "stream": stream,
                "messages": [
                    {"role": "system", "content": f"mail {secret[0]} about {secret[3]}"},
                    {"role": "user", "content": secret[1]},
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "c", "content": f'{{"is": "{secret[2]}"}}'},
                ],
            },
        )
        stored = await content(gateway, reply.headers["x-gw-generation-id"])
        whole = msgspec.json.encode(stored).decode()
        assert not [word for word in (*secret, "4111111111111111", "u0040") if word in whole], whole
        assert stored["answer"]["parts"][-1]["text"] == (
            "so [email] and [card] and [redacted] and [redacted]"
        )
        assert stored["request"]["body"]["messages"][2]["parts"][0]["arguments"] == (
            '{"to":"[email]","card":"[card]","[redacted]":["x"]}'
        )


async def test_pictures_and_lists_of_tokens_are_told_and_not_stored(gateway: Gateway) -> None:
    await switch_on(gateway)
    picture = base64.b64encode(b"\x89PNG" + b"canary-picture" * 30).decode()
    url = f"data:image/png;base64,{picture}"
    parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": url}}]
    reply = await gateway.client.post(
        "/chat/completions",
        json={"model": "demo/chat", "messages": [{"role": "user", "content": parts}]},
    )
    stored = await content(gateway, reply.headers["x-gw-generation-id"])
    assert stored["request"]["body"]["messages"][0]["parts"][1] == {
        "type": "image",
        "source": {"type": "inline", "media_type": "image/png", "bytes": 424},
    }
    reply = await gateway.client.post(
        "/embeddings", json={"model": "demo/embed", "input": ["some text", "more"]}
    )
    stored = await content(gateway, reply.headers["x-gw-generation-id"])
    assert stored["request"]["body"]["inputs"] == ["some text", "more"]
    assert stored["answer"]["embeddings"] == 2
    reply = await gateway.client.post(
        "/embeddings", json={"model": "demo/embed", "input": [1234, 5678, 91011]}
    )
    stored = await content(gateway, reply.headers["x-gw-generation-id"])
    assert stored["request"]["body"]["inputs"] == ["[3 tokens]"]


async def test_an_answer_that_breaks_off_is_stored_as_far_as_it_came(gateway: Gateway) -> None:
    await switch_on(gateway)
    gateway.vendor.script.next(Behaviour(text="one two three four", cut="reset", cut_after=3))
    reply = await gateway.chat("go on", stream=True)
    stored = await content(gateway, reply.headers["x-gw-generation-id"])
    text = stored["answer"]["parts"][0]["text"]
    assert text
    assert "one two three four".startswith(text)
    assert "finish_reason" not in stored["answer"]
    gateway.vendor.script.always(Behaviour(status=400, message="no"))
    reply = await gateway.chat(ASKED)
    gateway.vendor.script.clear()
    stored = await content(gateway, reply.headers["x-gw-generation-id"])
    assert ASKED in str(stored["request"])
    assert stored["answer"] is None


async def test_only_one_s_own_is_seen_and_switched_on(gateway: Gateway) -> None:
    """Another organization sees neither contents nor totals, and the operator switches on nobody's log but his own."""
    other = {"name": "Globex", "owner_email": "owner@globex.example"}
    made = await gateway.manage("POST", "/organizations", other)
    theirs = {"authorization": f"Bearer {made['management_key']}"}
    await switch_on(gateway)
    reply = await gateway.chat(ASKED)
    generation_id = reply.headers["x-gw-generation-id"]
    await content(gateway, generation_id)
    for path in (f"/generation/content?id={generation_id}", "/content-log"):
        seen = await gateway.client.get(path, headers=theirs)
        assert ASKED not in seen.text
        assert '"stored":1' not in seen.text
    totals = await gateway.client.get("/content-log", headers=theirs)
    assert totals.json()["data"]["stored"] == 0
    for path in (f"/generation/content?id={generation_id}", "/content-log?all=true"):
        assert (await gateway.client.delete(path, headers=theirs)).json()["erased"] == 0
    await content(gateway, generation_id)
    path = f"/organizations/{made['data']['id']}/settings"
    refused = await gateway.operator.patch(path, json={"content_log": {"days": 1}})
    assert (refused.status_code, refused.json()["error"]["param"]) == (403, "content_log")
    inference = await gateway.client.get(f"/generation/content?id={generation_id}")
    assert inference.status_code == 403


async def test_expiry_erases_every_byte_from_file_and_log(gateway: Gateway, tmp_path: Path) -> None:
    await switch_on(gateway)
    await talk(gateway)
    sealed = await gateway.store.read(_sealed)
    assert len(sealed) == 6
    assert len(_bytes_left(gateway, sealed)) == 6  # the search can see
    job = ContentLogJob(gateway.store, gateway.running.node.clock, max_bytes=10**9)
    await job.run()
    assert len(await gateway.store.read(_sealed)) == 6
    await gateway.store.write(_age, days=8)
    await job.run()
    assert await gateway.store.read(_sealed) == []
    assert _bytes_left(gateway, sealed) == []
    made = backup.backup(gateway.running.settings, tmp_path / "copy.db")
    assert not [each for each in sealed if each in made.path.read_bytes()]
    assert (await gateway.manage("GET", "/operator/secrets/verify"))["data"]["ok"]


async def test_erasing_takes_what_was_named_and_no_byte_of_it_is_left(gateway: Gateway) -> None:
    await switch_on(gateway)
    other, other_id = await gateway.new_key(name="other")
    told = {
        "first": await gateway.chat(ASKED, user="ada"),
        "second": await gateway.chat(ASKED, session_id="s-1"),
        "third": await gateway.chat(ASKED, headers={"authorization": f"Bearer {other}"}),
        "fourth": await gateway.chat(ASKED),
    }
    ids = {name: reply.headers["x-gw-generation-id"] for name, reply in told.items()}
    await gateway.at_rest()

    async def left() -> set[str]:
        found = await asyncio.gather(
            *(
                gateway.operator.get("/generation/content", params={"id": identity})
                for identity in ids.values()
            )
        )
        return {name for name, reply in zip(ids, found, strict=True) if reply.status_code == 200}

    assert await left() == set(ids)
    everything = await gateway.store.read(_sealed)
    for query, gone in (
        ("user=nobody", 0),
        ("user=ada&session_id=s-1", 0),
        ("user=ada", 1),
        ("session_id=s-1", 1),
        (f"key_id={other_id}", 1),
    ):
        reply = await gateway.manage("DELETE", f"/content-log?{query}")
        assert (reply["erased"], reply["log_emptied"]) == (gone, True), query
    assert await left() == {"fourth"}
    kept = await gateway.store.read(_sealed)
    assert _bytes_left(gateway, everything) == kept
    for query in ("", "?all=false", "?all=true&user=ada", "?key_id=key_absent"):
        refused = await gateway.operator.delete(f"/content-log{query}")
        assert refused.status_code in (400, 404), query
    await gateway.manage("DELETE", f"/generation/content?id={ids['fourth']}")
    assert _bytes_left(gateway, everything) == []
    lines = (await gateway.manage("GET", "/audit?action=content_log.erase"))["data"]
    assert sum(line["details"]["erased"] for line in lines) == 4
    assert "ada" not in str(lines)


async def test_the_oldest_go_first_where_there_is_too_much(gateway: Gateway) -> None:
    await switch_on(gateway)
    ids = [(await gateway.chat(ASKED)).headers["x-gw-generation-id"] for _ in range(4)]
    await gateway.at_rest()
    sizes = [len(each) for each in await gateway.store.read(_sealed)]
    job = ContentLogJob(gateway.store, gateway.running.node.clock, max_bytes=sizes[2] + sizes[3])
    await job.run()
    for generation_id, status in zip(ids, (404, 404, 200, 200), strict=True):
        await content(gateway, generation_id, status=status)


async def test_nothing_is_stored_once_it_is_off_and_a_shorter_time_holds_at_once(
    gateway: Gateway,
) -> None:
    await switch_on(gateway, days=30)
    first = (await gateway.chat(ASKED)).headers["x-gw-generation-id"]
    await content(gateway, first)
    await gateway.store.write(_age, days=3)
    await content(gateway, first)
    await switch_on(gateway, days=2)
    await content(gateway, first, status=404)
    await switch_on(gateway, days=30)
    gateway.vendor.script.next(Behaviour(delay_s=0.3))
    on_its_way = asyncio.create_task(gateway.chat(ASKED))
    await asyncio.sleep(0.15)
    await gateway.manage("PATCH", "/organization/settings", {"content_log": None})
    second = (await on_its_way).headers["x-gw-generation-id"]
    await content(gateway, second, status=404)
    await content(gateway, first)  # what there is stays until its time is over


async def test_a_rotation_of_the_ring_seals_it_anew(gateway: Gateway) -> None:
    await switch_on(gateway)
    generations = await talk(gateway)
    found = (await gateway.manage("POST", "/operator/secrets/rotate", {}))["data"]
    later = (await gateway.chat(ASKED)).headers["x-gw-generation-id"]
    for _ in range(500):
        found = (await gateway.manage("GET", "/operator/secrets"))["data"]
        if found["current_since"] is not None:
            break
        await asyncio.sleep(0.02)
    assert (found["state"], found["left"]) == ("current", 0)
    await gateway.manage("POST", "/operator/secrets/prune", {"force": True})
    for generation_id in (*generations, later):
        assert ASKED in str(await content(gateway, generation_id))


@pytest.mark.parametrize("trouble", ["write", "disk", "content"])
async def test_what_cannot_be_stored_fails_no_request(
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    trouble: str,
) -> None:
    await switch_on(gateway)
    logger = gateway.running.node.line.content_logger

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(ASKED)

    match trouble:
        case "write":
            monkeypatch.setattr("gwd.pipeline.settle.content_log.content_log.write", broken)
        case "content":
            monkeypatch.setattr("gwd.pipeline.settle.content_log.content_of", broken)
        case _:
            monkeypatch.setattr(logger._vitals.__class__, "disk_free_bytes", LITTLE_BYTES - 1)
    for stream in (False, True):
        reply = await gateway.chat(ASKED, stream=stream)
        assert reply.status_code == 200
    await gateway.at_rest()
    outcome = "left_out_disk" if trouble == "disk" else "failed"
    assert gateway.running.node.counters.content_log == {outcome: 2}
    assert caplog.text.count("was served and not stored") == 2  # the first, and when it doubled
    assert ASKED not in caplog.text


def _sealed(connection: Any) -> list[bytes]:
    return [bytes(row[0]) for row in connection.rows("SELECT content FROM content_log ORDER BY id")]


def _age(connection: Any, *, days: int) -> None:
    connection.execute(
        "UPDATE content_log SET created_at = created_at - ?1, expires_at = expires_at - ?1",
        (days * 86_400_000_000,),
    )


def _bytes_left(gateway: Gateway, sealed: list[bytes]) -> list[bytes]:
    """Which of these contents are in a file of the node, by their middle: a page may cut them anywhere."""
    found = files(gateway).values()
    return [
        each
        for each in sealed
        if any(
            each[start : start + 40] in file for file in found for start in (0, 60, len(each) - 60)
        )
    ]
