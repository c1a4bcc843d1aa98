"""Which columns of destinations hold sealed values, and what each was sealed for."""

from typing import Final

import msgspec

from gwd.alerts.destinations import address_binding, secret_binding
from gwd.credentials.sealed import SealedPlace
from gwd.credentials.vault import Binding


def _address(destination_id: str, organization_id: str) -> tuple[Binding, ...]:
    return (address_binding(organization_id, destination_id),)


def _secret(destination_id: str, organization_id: str, url: str) -> tuple[Binding, ...]:
    return (secret_binding(organization_id, destination_id, url),)


ADDRESSES: Final = SealedPlace(
    name="chat address",
    table="destination",
    column="sealed_address",
    row="id",
    facts=("organization_id",),
    bindings=_address,
    remedy="make the destination anew: gwctl webhook delete, gwctl webhook add",
)
SECRETS: Final = SealedPlace(
    name="webhook secret",
    table="destination",
    column="sealed_secret",
    row="id",
    facts=("organization_id", "address"),
    bindings=_secret,
    remedy="give it a new one: gwctl webhook rotate-secret",
)
OLD_SECRETS: Final = msgspec.structs.replace(
    SECRETS, name="webhook secret before", column="sealed_old_secret"
)
