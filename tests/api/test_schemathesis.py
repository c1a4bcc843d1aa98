"""The written shape judged by schemathesis on a running node: what it says of answers is so, and none is a 500.

SCHEMA_EXAMPLES asks for more of each operation than the ordinary run does, SCHEMA_SEED repeats one.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from gwd.api.openapi import document
from tests.support.node import Gateway

EXAMPLES = int(os.environ.get("SCHEMA_EXAMPLES", "3"))
SEED = os.environ.get("SCHEMA_SEED", "0")
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
# With a real id these would end what the others need.
ENDS_THINGS = {"organizations_patch", "members_patch"}


async def test_every_answer_is_as_it_is_written(gateway: Gateway, tmp_path: Path) -> None:
    written = document()
    _name_what_there_is(written, await _ids(gateway))
    schema, config = tmp_path / "openapi.json", tmp_path / "schemathesis.toml"
    schema.write_text(json.dumps(written))
    config.write_text(
        f'headers = {{ Authorization = "Bearer {gateway.management_key}" }}\n'
        "[[operations]]\n"
        'include-tag = "inference"\n'
        f'headers = {{ Authorization = "Bearer {gateway.key}" }}\n'
    )
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(config)),
        *("run", str(schema), "--url", gateway.base_url, "--checks", ",".join(CHECKS)),
        *("--phases", "fuzzing", "--max-examples", str(EXAMPLES), "--seed", SEED),
        *("--no-shrink", "--continue-on-failure", "--warnings", "off"),
        *("--suppress-health-check", "all", "--request-timeout", "20"),
    ]
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=tmp_path,
        env={**os.environ, "NO_COLOR": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        reported, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    print(reported.decode())
    assert process.returncode == 0


async def _ids(gateway: Gateway) -> dict[str, list[str]]:
    """What is there to be asked about, by the names of the paths' parameters."""

    async def first(path: str, field: str = "id") -> list[str]:
        found = await gateway.manage("GET", path)
        return [str(record[field]) for record in found["data"]][:2]

    await gateway.manage(
        "POST", "/budgets", {"scope": "organization", "interval": "monthly", "limit": 1000}
    )
    await gateway.manage("POST", "/organization/invitations", {"email": "ada@acme.example"})
    return {
        "key": [gateway.key_id],
        "user": await first("/organization/members"),
        "invitation": await first("/organization/invitations"),
        "workspace": await first("/workspaces"),
        "organization": await first("/organizations"),
        "budget": await first("/budgets"),
        "slug": await first("/catalog/providers", "slug"),
        "model": await first("/catalog/models"),
        "endpoint": await first("/catalog/endpoints"),
        "credential": await first("/catalog/credentials"),
    }


def _name_what_there_is(written: dict[str, Any], ids: dict[str, list[str]]) -> None:
    """Paths are tried with ids that exist, or most answers would be 404."""
    for methods in written["paths"].values():
        for method, operation in methods.items():
            if method == "delete" or operation["operationId"] in ENDS_THINGS:
                continue
            for parameter in operation["parameters"]:
                if parameter["in"] == "path" and parameter["name"] in ids:
                    parameter["schema"] = {"type": "string", "enum": ids[parameter["name"]]}
