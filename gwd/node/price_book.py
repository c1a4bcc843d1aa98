"""The shipped catalog as inputs of the catalog room: the part of one vendor, with the place of its key."""

import tomllib
from pathlib import Path
from typing import Any, Final

import msgspec

from gwd.catalog import endpoints, models, providers
from gwd.catalog.inputs import EndpointInput, ModelInput, ProviderInput
from gwd.credentials import service as credentials
from gwd.credentials.service import CredentialInput
from gwd.credentials.vault import Vault
from gwd.store import Connection
from gwd.vendors.formats import FORMATS

# Installed, the file lies with the command line, which ships it too; in a checkout it lies with the examples.
_PLACES: Final = ("gwctl/catalog.toml", "examples/catalog.toml")


class Entries(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of catalog, in an order in which it can be created."""

    providers: list[ProviderInput]
    models: list[ModelInput]
    endpoints: list[EndpointInput]
    credentials: list[CredentialInput]


class NoPriceBookError(RuntimeError):
    """The shipped catalog is missing from this installation."""


def of_vendor(slug: str, *, key_ref: str) -> Entries:
    """A vendor's providers (`openai`, `openai-chat` …) with their models, and one credential each."""
    tables = _read()
    wanted = [
        entry
        for entry in tables["providers"]
        if entry["slug"] == slug or entry["slug"].startswith(f"{slug}-")
    ]
    slugs = {entry["slug"] for entry in wanted}
    served = [entry for entry in tables["endpoints"] if entry["provider"] in slugs]
    names = {entry["model"] for entry in served}
    return Entries(
        providers=msgspec.convert(wanted, list[ProviderInput]),
        models=_successors_first(
            msgspec.convert(
                [entry for entry in tables["models"] if entry["id"] in names], list[ModelInput]
            )
        ),
        endpoints=msgspec.convert(served, list[EndpointInput]),
        credentials=[
            CredentialInput(provider=provider, key_ref=key_ref) for provider in sorted(slugs)
        ],
    )


def add(
    connection: Connection, vault: Vault, entries: Entries, *, allow_http: bool, now_us: int
) -> None:
    """Create all of it; nothing of it may exist."""
    for provider in entries.providers:
        providers.create(
            connection, provider, formats=FORMATS, allow_http=allow_http, now_us=now_us
        )
    for model in entries.models:
        models.create(connection, model, now_us=now_us)
    for endpoint in entries.endpoints:
        endpoints.create(connection, endpoint, allow_http=allow_http, now_us=now_us)
    for credential in entries.credentials:
        credentials.create(connection, vault, credential, now_us=now_us)


def _read() -> dict[str, Any]:
    root = Path(__file__).resolve().parents[2]
    for place in _PLACES:
        if (root / place).is_file():
            return tomllib.loads((root / place).read_text("utf-8"))
    raise NoPriceBookError(
        "the shipped catalog is missing from this installation; install gwd again"
    )


def _successors_first(found: list[ModelInput]) -> list[ModelInput]:
    """A model may name its successor only once that exists."""
    by_id = {model.id: model for model in found}
    ordered: dict[str, ModelInput] = {}

    def place(model: ModelInput) -> None:
        if model.successor in by_id and model.successor not in ordered:
            place(by_id[model.successor])
        ordered[model.id] = model

    for model in found:
        place(model)
    return list(ordered.values())
