"""What was taken away after a copy was made is taken away again when the copy is put back, before anybody is served."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gwd.core.clock import US_PER_DAY
from gwd.management import revocations
from gwd.management.revocations import WATCHED
from gwd.node import backup
from gwd.orgs import members
from gwd.orgs.members import NewMember
from gwd.store.connection import open_connection
from gwd.store.revocation_log import Revocation, RevocationLogError
from gwd.wiring import RunningNode
from tests.flows.clock import MovableClock
from tests.flows.started import Started, started, stop, vendor
from tests.support.node import Gateway

__all__ = ["started", "vendor"]

STATE = {
    "api_key": "SELECT id, disabled, deleted_at IS NULL, expires_at, role FROM api_key",
    "credential": "SELECT id, disabled FROM credential",
    "member": "SELECT id, removed_at IS NULL, role FROM member",
    "workspace_member": "SELECT workspace_id, user_id FROM workspace_member",
    "workspace": "SELECT id, deleted_at IS NULL FROM workspace",
    "organization": "SELECT id, suspended, deleted_at IS NULL FROM organization",
    "invitation": "SELECT id, COALESCE(revoked_at, accepted_at) IS NULL FROM invitation",
    "destination": "SELECT id, enabled FROM destination",
    "auto_topup": "SELECT organization_id, enabled FROM auto_topup",
}


class Restored:
    """A node whose copy is put back while it is stopped."""

    def __init__(self, started: Started, copy: Path) -> None:
        self.started, self.copy = started, copy
        self.running: RunningNode
        self.gateway: Gateway

    async def start(self) -> None:
        self.running, self.gateway = await self.started.start(
            GWD_WEBHOOKS_ALLOW_NETWORKS='["127.0.0.0/8"]', GWD_WEBHOOKS_ALLOW_HTTP="true"
        )

    async def stop(self) -> None:
        await stop(self.running, self.gateway)

    def back_up(self) -> None:
        assert backup.backup(self.running.settings, self.copy).wrong == ""

    async def put_back(self) -> None:
        """Stop, restore the copy, start."""
        await self.stop()
        backup.restore(self.running.settings, self.copy, MovableClock())
        await self.start()

    @property
    def log(self) -> Path:
        return self.running.settings.revocations

    def state(self) -> dict[str, set[tuple[Any, ...]]]:
        connection = open_connection(str(self.running.settings.database), "reader")
        try:
            return {table: set(connection.rows(sql)) for table, sql in STATE.items()}
        finally:
            connection.raw.close()

    async def audited(self) -> dict[str, list[str]]:
        lines = await self.gateway.manage("GET", "/audit?action=revocations.restore&limit=100")
        return {line["details"]["what"]: line["details"]["ids"] for line in lines["data"]}

    async def status_of(self, key: str) -> int:
        headers = {"authorization": f"Bearer {key}"}
        return (await self.gateway.client.get("/auth/key", headers=headers)).status_code


@pytest.fixture
async def node(started: Started, tmp_path: Path) -> AsyncIterator[Restored]:
    made = Restored(started, tmp_path / "copy.db")
    await made.start()
    yield made
    await made.gateway.verify()
    await made.stop()


class Made:
    """One thing of each kind that can be taken away."""

    def __init__(self) -> None:
        self.keys: dict[str, str] = {}
        self.ids: dict[str, str] = {}


async def make_all(gateway: Gateway) -> Made:
    made, manage = Made(), gateway.manage
    for name in ("disabled", "deleted", "expiring", "rotated", "back"):
        made.keys[name], made.ids[name] = await gateway.new_key(name=name)

    def join(connection: Any) -> tuple[str, str]:
        organization_id = revocations.node_of(connection)
        return tuple(
            members.join(
                connection,
                organization_id,
                NewMember(email=f"{name}@acme.example", role="admin"),
                now_us=gateway.running.node.clock.now_us(),
            ).id
            for name in ("gone", "lower")
        )  # type: ignore[return-value]

    made.ids["gone"], made.ids["lower"] = await gateway.store.write(join)
    for who in ("gone", "lower"):
        body = {"name": who, "type": "management", "user_id": made.ids[who], "role": "admin"}
        issued = await manage("POST", "/keys", body)
        made.keys[who] = issued["key"]
    for name in ("closed", "open"):
        found = await manage("POST", "/workspaces", {"name": name})
        made.ids[name] = found["data"]["id"]
        people = {"user_ids": [made.ids["lower"]]}
        await manage("POST", f"/workspaces/{made.ids[name]}/members/add", people)
    for name in ("suspended", "ended"):
        found = await manage("POST", "/organizations", {"name": name})
        made.ids[name], made.keys[name] = found["data"]["id"], found["management_key"]
    invited = await manage("POST", "/organization/invitations", {"email": "new@acme.example"})
    made.ids["invited"] = invited["data"]["id"]
    for name in ("silent", "removed"):
        hook = {"type": "webhook", "name": name, "url": f"http://127.0.0.1:9/{name}"}
        found = await manage("POST", "/notifications/destinations", hook)
        made.ids[name] = found["data"]["id"]
    topup = {"threshold": 1, "amount": 5, "hook_url": "http://127.0.0.1:9/pay", "enabled": True}
    await manage("PATCH", "/credits/auto-topup", topup)
    for name in ("dropped", "stopped", "replaced"):
        body = {"provider": "openai-chat", "key": f"sk-demo-{name}", "name": name}
        made.ids[name] = (await manage("POST", "/byok", body))["data"]["id"]
    return made


async def take_all_away(gateway: Gateway, made: Made) -> None:
    manage, ids = gateway.manage, made.ids
    await manage("PATCH", f"/keys/{ids['disabled']}", {"disabled": True})
    await manage("PATCH", f"/keys/{ids['back']}", {"disabled": True})
    await manage("PATCH", f"/keys/{ids['back']}", {"disabled": False})
    await manage("DELETE", f"/keys/{ids['deleted']}")
    await manage("PATCH", f"/keys/{ids['expiring']}", {"expires_at": "2199-01-01T00:00:00Z"})
    await manage("POST", f"/keys/{ids['rotated']}/rotate", {"overlap": "1h"})
    await manage("DELETE", f"/organization/members/{ids['gone']}")
    await manage("PATCH", f"/organization/members/{ids['lower']}", {"role": "member"})
    await manage("DELETE", f"/workspaces/{ids['closed']}")
    people = {"user_ids": [ids["lower"]]}
    await manage("POST", f"/workspaces/{ids['open']}/members/remove", people)
    await manage("PATCH", f"/organizations/{ids['suspended']}", {"suspended": True})
    await manage("DELETE", f"/organizations/{ids['ended']}")
    await manage("DELETE", f"/organization/invitations/{ids['invited']}")
    await manage("POST", f"/notifications/destinations/{ids['silent']}/disable")
    await manage("DELETE", f"/notifications/destinations/{ids['removed']}")
    await manage("PATCH", "/credits/auto-topup", {"hook_url": "http://127.0.0.1:9/other"})
    await manage("PATCH", "/credits/auto-topup", {"enabled": False})
    await manage("DELETE", f"/byok/{ids['dropped']}")
    await manage("PATCH", f"/byok/{ids['stopped']}", {"disabled": True})
    await manage("PATCH", f"/byok/{ids['replaced']}", {"key": "sk-demo-fresh"})


async def test_everything_that_was_taken_away_stays_away(node: Restored) -> None:
    made = await make_all(node.gateway)
    node.back_up()
    before = node.state()
    await take_all_away(node.gateway, made)
    after = node.state()
    content = node.log.read_text()
    assert {each.what for each in WATCHED if f'"{each.what}"' not in content} == set()
    assert not [secret for secret in made.keys.values() if secret in content]
    assert "sk-demo" not in content
    await node.put_back()
    found = node.state()
    assert found != before

    known = {table: {row[0] for row in rows} for table, rows in before.items()}
    for table, rows in found.items():
        wanted = {row for row in after[table] if row[0] in known[table]}
        if table == "credential":
            wanted = (wanted - {(made.ids["replaced"], 0)}) | {(made.ids["replaced"], 1)}
        if table == "destination":
            wanted |= {(made.ids["removed"], 0)}
        assert rows == wanted, table
    for name in ("disabled", "deleted", "gone", "ended"):
        assert await node.status_of(made.keys[name]) in (401, 403), name
    assert await node.status_of(made.keys["back"]) == 200
    assert await node.status_of(made.keys["expiring"]) == 200
    audited = await node.audited()
    assert audited["key.deleted"] == [made.ids["deleted"]]
    assert made.ids["disabled"] in audited["key.disabled"]
    assert made.ids["back"] not in audited["key.disabled"]


async def test_a_start_without_a_restore_takes_nothing_away(node: Restored) -> None:
    key, key_id = await node.gateway.new_key()
    await node.gateway.manage("PATCH", f"/keys/{key_id}", {"disabled": True})
    await node.stop()
    await node.start()
    await node.gateway.manage("PATCH", f"/keys/{key_id}", {"disabled": False})
    await node.stop()
    await node.start()
    assert await node.status_of(key) == 200
    assert await node.audited() == {}


async def test_after_a_restore_what_is_given_back_stays_given(node: Restored) -> None:
    key, key_id = await node.gateway.new_key()
    node.back_up()
    await node.gateway.manage("PATCH", f"/keys/{key_id}", {"disabled": True})
    await node.put_back()
    assert await node.status_of(key) == 401
    await node.gateway.manage("PATCH", f"/keys/{key_id}", {"disabled": False})
    await node.stop()
    await node.start()
    assert await node.status_of(key) == 200
    node.copy.unlink()
    node.back_up()
    await node.gateway.manage("DELETE", f"/keys/{key_id}")
    await node.put_back()
    assert await node.status_of(key) == 401


async def test_what_was_written_down_and_never_committed_is_taken_away(node: Restored) -> None:
    """A kill between the log and the COMMIT: nobody was answered, and the safe side is taken."""
    key, key_id = await node.gateway.new_key()
    await node.stop()
    seq = node.log.read_bytes().count(b"\n") + 100
    lost = f'{{"seq":{seq},"at_us":1,"what":"key.disabled","id":"{key_id}","value":1}}\n{{"seq":'
    with node.log.open("a") as file:
        file.write(lost)
    await node.start()
    assert await node.status_of(key) == 401
    assert await node.audited() == {"key.disabled": [key_id]}


async def test_a_log_that_takes_no_line_lets_nothing_be_taken_away(
    node: Restored, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, key_id = await node.gateway.new_key()
    length = node.log.stat().st_size

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        await node.gateway.manage("PATCH", f"/keys/{key_id}", {"disabled": True}, status=503)
    assert await node.status_of(key) == 200
    assert node.log.stat().st_size == length
    await node.gateway.manage("PATCH", f"/keys/{key_id}", {"disabled": True})
    assert await node.status_of(key) == 401


async def test_the_log_of_another_node_stops_the_start(node: Restored) -> None:
    await node.stop()
    content = node.log.read_text()
    node.log.write_text(content.replace('"org_', '"org_other', 1))
    with pytest.raises(RevocationLogError, match="log of another node"):
        await node.start()
    node.log.write_text(content)
    await node.start()


async def test_a_log_that_was_lost_begins_anew(node: Restored) -> None:
    key, key_id = await node.gateway.new_key()
    _, other_id = await node.gateway.new_key()
    await node.gateway.manage("PATCH", f"/keys/{other_id}", {"disabled": True})
    await node.stop()
    node.log.unlink()
    await node.start()
    node.back_up()
    await node.gateway.manage("PATCH", f"/keys/{key_id}", {"disabled": True})
    await node.put_back()
    assert await node.status_of(key) == 401


def test_lines_are_kept_for_400_days_and_as_long_as_the_oldest_copy() -> None:
    now_us = 1_000 * US_PER_DAY
    lines = [
        Revocation(seq=day, at_us=day * US_PER_DAY, what="key.deleted", id="key_1")
        for day in range(1, 1_001)
    ]
    kept = revocations.needed(lines, oldest_copy_us=None, now_us=now_us)
    assert kept[0].seq == 600
    kept = revocations.needed(lines, oldest_copy_us=300 * US_PER_DAY, now_us=now_us)
    assert kept[0].seq == 300
    kept = revocations.needed(lines, oldest_copy_us=900 * US_PER_DAY, now_us=now_us)
    assert kept[0].seq == 600
