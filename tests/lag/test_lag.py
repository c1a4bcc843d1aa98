"""No input holds up the loop: the worst of each kind beside a stream that is paced.

Everything runs for real: a daemon in a process of its own, a client, a vendor that says any bytes. What is measured is
processor time of the daemon between two moments at which its loop is free, so that a busy machine changes nothing.
"""

import asyncio
import os
from pathlib import Path

import httpx
import pytest

from tests.lag.bench import MeasuredNode, RawVendor, measured_node, paced_stream
from tests.lag.corpus import SMALL_ANSWERS, Row, rows, small_body, whole
from tests.support.pace import slowness

LIMIT_S = 0.25
TRIES = 3
"""A neighbour on the same machine makes processor time longer, never shorter: of a row that seems to take too long, the
best of so many tries counts."""
ONLY = os.environ.get("LAG_ONLY", "")


@pytest.mark.slow
async def test_no_input_holds_up_the_loop(tmp_path: Path) -> None:
    held_up: list[str] = []
    async with (
        RawVendor().open() as vendor,
        measured_node(tmp_path, vendor) as node,
        paced_stream(node),
    ):
        for row in rows():
            if ONLY not in row.name:
                continue
            gap_s, frames, status = await measured(node, vendor, row)
            for _ in range(1, TRIES):
                if gap_s > LIMIT_S:
                    again = await measured(node, vendor, row)
                    gap_s, frames, status = min((gap_s, frames, status), again)
            if ONLY:
                print(f"{gap_s:.3f} s {frames:5} frames {status} {row.name}")
            is_long = gap_s > LIMIT_S and gap_s > LIMIT_S * slowness()
            if is_long or not frames:
                held_up.append(f"{row.name}: {gap_s:.3f} s, {frames} frames, status {status}")
    assert held_up == []


async def measured(node: MeasuredNode, vendor: RawVendor, row: Row) -> tuple[float, int, int]:
    """The longest time for which the loop was held up while the row was dealt with, and its status."""
    body = row.make_body() if row.make_body is not None else small_body(row)
    made = row.make_answer() if row.make_answer is not None else whole(SMALL_ANSWERS[row.model])
    vendor.answer = made
    headers = {"content-type": "application/json"}
    if row.is_compressed:
        headers["content-encoding"] = "deflate"
    await node.gateway.manage("POST", "/operator/reload")  # what an earlier row made rest may serve
    await node.gap()
    try:
        is_managed = row.path.startswith(("/catalog", "/keys"))
        client = node.gateway.operator if is_managed else node.gateway.client
        reply = await client.post(row.path, content=body, headers=headers)
        status = reply.status_code
    except httpx.TransportError:
        status = 0
    await asyncio.sleep(0.05)
    gap_s, frames = await node.gap()
    return gap_s, frames, status
