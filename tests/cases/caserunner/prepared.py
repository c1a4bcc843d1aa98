"""Folders in which the catalogue is made already: most cases want the same one, at other addresses."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from .gateway import Gateway, Options
from .moved_vendors import move_vendors
from .preparation import Fixture, Management, endpoint_names, provider_names
from .vendors import Vendors

OWN_CATALOGUE = {"models", "endpoint_config", "budgets", "now", "env"}


class Prepared:
    """One folder for each set of endpoints that cases ask for, made by a gateway when the first one does."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._made: dict[str, Path] = {}

    async def folder(self, fixture: Fixture, options: Options) -> Path | None:
        """The folder to begin with; None for a case whose catalogue is its own."""
        if fixture.keys() & OWN_CATALOGUE:
            return None
        name = json.dumps(fixture.get("endpoints", {}), sort_keys=True)
        if name not in self._made:
            made = self._place / str(len(self._made))
            await _make(made, {"endpoints": fixture.get("endpoints", {})}, options)
            self._made[name] = made
        return self._made[name]


async def _make(folder: Path, fixture: Fixture, options: Options) -> None:
    gateway, vendors = Gateway(replace(options, prepared=None), fixture), Vendors()
    try:
        await vendors.start(endpoint_names(fixture))
        await gateway.start()
        await Management(gateway).catalogue(fixture, "", vendors)
        await gateway.leave(folder)
    finally:
        await gateway.stop()
        vendors.stop()


def move_to(folder: Path, fixture: Fixture, vendors: Vendors) -> None:
    """The vendors of this case listen at other addresses than those at which the catalogue was made."""
    addresses: Mapping[str, str] = {
        slug: vendors.base_url(name, vendor) for slug, name, vendor in provider_names(fixture)
    }
    move_vendors(folder, addresses.get)
