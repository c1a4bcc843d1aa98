"""A node that died in the middle of answers: what was delivered is billed, the rest is free."""

import asyncio
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

from gwd.demo import Behaviour
from gwd.node.backup import backup
from tests.limits.conftest import Opened
from tests.limits.till import Till, bill, request
from tests.limits.watch import Watch
from tests.support.node import PRICES, Gateway, Nodes
from tests.vendor import StrictVendor

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PICTURED = {**PRICES, "image": "0.0007", "request": "0.0001"}


async def test_after_a_crash_the_last_checkpoint_is_billed_exactly_and_the_rest_is_released(
    opened: Opened, watch: Watch, tmp_path: Path
) -> None:
    """A copy of the running database is what a killed node leaves behind; another node starts on it."""
    picture = {"type": "image_url", "image_url": {"url": PIXEL}}
    text = {"type": "text", "text": "what is this?"}
    async with opened() as gateway:
        await gateway.manage(
            "PATCH", "/catalog/models/demo/chat", {"pricing": PICTURED, "accept": True}
        )
        gateway.vendor.script.next(Behaviour(tokens=120, event_delay_s=0.03))
        gateway.vendor.script.next(Behaviour(tokens=120, event_delay_s=0.03, delay_s=4))
        streaming = asyncio.create_task(
            gateway.client.post(
                "/chat/completions",
                json={
                    **request("chat", "", stream=True),
                    "messages": [{"role": "user", "content": [text, picture]}],
                },
            )
        )
        await gateway.vendor.calls.wait_for(1)
        waiting = asyncio.create_task(gateway.chat("never answered", stream=True))
        async with asyncio.timeout(10):
            while not await gateway.store.read(_has_progress):
                await asyncio.sleep(0.05)
        copy = tmp_path / "copy.db"
        await asyncio.to_thread(backup, gateway.running.settings, copy)
        shutil.copytree(tmp_path / "node", tmp_path / "dead" / "node")
        for task in (streaming, waiting):
            task.cancel()
        await asyncio.gather(streaming, waiting, return_exceptions=True)

    for name in ("gwd.db", "gwd.db-wal", "gwd.db-shm"):
        (tmp_path / "dead" / "node" / name).unlink(missing_ok=True)
    copy.rename(tmp_path / "dead" / "node" / "gwd.db")
    async with StrictVendor() as vendor, Nodes(tmp_path / "dead").running(watch) as running:
        risen = Gateway(running, vendor, gateway.management_key)
        till = Till(risen)
        try:
            rows = [
                await till.row(record["id"])
                for record in (await risen.manage("GET", "/generations"))["data"]
            ]
            assert sorted((row.status, row.streamed) for row in rows) == [
                ("failed", True),
                ("incomplete", True),
            ]
            for row in rows:
                charged = await till.partial(row)
                if row.status == "failed":
                    assert charged == 0
                    continue
                assert (row.images, row.usage_estimated, row.finish_reason) == (1, True, "error")
                assert 5 < row.tokens_output < 120
                assert charged == bill(row, PICTURED) > Decimal("0.0008")
            shown = (await risen.manage("GET", "/credits"))["data"]
            assert shown["reserved"] == 0
            await risen.verify()
        finally:
            await risen.client.aclose()
            await risen.operator.aclose()


def _has_progress(connection: Any) -> bool:
    row = connection.row("SELECT COUNT(*) FROM reservation_context WHERE progress IS NOT NULL")
    return bool(row[0])
