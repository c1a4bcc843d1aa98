"""Killed while requests are being stored: the books are whole, and what is stored opens whole or is not there."""

from pathlib import Path

import httpx

from gwd.content_log.content import decode
from gwd.content_log.sealing import opened
from gwd.credentials import keyring
from gwd.credentials.vault import Vault
from gwd.store.connection import open_connection
from tests.faults.kill_harness import Harness
from tests.vendor import StrictVendor

DEATHS = ("after the settlement's commit", None)


class StoringHarness(Harness):
    """The organization has its requests stored."""

    stored = 0

    async def prepare(self) -> None:
        await super().prepare()
        await self._start([])
        headers = {"authorization": f"Bearer {self._management_key}"}
        async with httpx.AsyncClient(base_url=self._url, headers=headers) as operator:
            wanted = {"content_log": {"days": 1}}
            reply = await operator.patch("/organization/settings", json=wanted)
            assert reply.status_code == 200, reply.text
        await self._die()

    def _look(self) -> None:
        super()._look()
        vault = Vault(keyring.read(self._config.with_name("keyring.json")))
        connection = open_connection(self._database, "reader")
        rows = connection.rows(
            "SELECT generation_id, content_log.organization_id, data_key_id, sealed, content FROM content_log"
            " LEFT JOIN content_log_key ON content_log_key.id = data_key_id"
        )
        connection.raw.close()
        for generation_id, organization_id, data_key_id, sealed_key, content in rows:
            plain = opened(
                content,
                vault,
                sealed_key,
                data_key_id=data_key_id,
                organization_id=organization_id,
                generation_id=generation_id,
            )
            assert decode(plain).request["models"] == ["demo/killed"]
        self.stored = len(rows)


async def test_a_node_that_is_killed_while_it_stores_has_whole_books_and_whole_contents(
    tmp_path: Path,
) -> None:
    async with StrictVendor() as vendor:
        harness = StoringHarness(tmp_path, vendor, seed=1)
        await harness.prepare()
        for point in DEATHS:
            await harness.round(point)
            assert harness.figures.wrong == []
        await harness.last_look()
    assert harness.figures.wrong == []
    assert harness.figures.acknowledged > len(DEATHS)
    assert harness.stored > 0  # what a kill came before is not stored, and missed by no book
