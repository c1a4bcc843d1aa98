"""Where a credential goes: to the origin it was made for and to no other, whatever becomes of its provider."""

from typing import Final

import msgspec

from gwd.catalog import providers
from gwd.catalog.providers import Origins
from gwd.core.errors import InvalidValue
from gwd.core.web_address import WebAddressError, read_web_address
from gwd.store import Connection

_MAX_NAMED: Final = 5


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """`base_url` as it was given with the key, None for the provider's; `origin` is the one that it is of."""

    base_url: str | None
    origin: str
    takes_keys: bool


def place_of(connection: Connection, provider: str, base_url: str | None) -> Place:
    """The place of a key that is set now. Raises InvalidValue for a base URL at none of the provider's origins."""
    providers.require(connection, provider)
    there = providers.origins(connection)[provider]
    if base_url is None:
        if there.own is None:
            raise InvalidValue(
                f"`provider`: the base_url of `{provider}` cannot be read; set it again first",
                param="provider",
            )
        return Place(base_url=None, origin=there.own, takes_keys=there.takes_keys)
    try:
        origin = read_web_address(base_url).origin
    except WebAddressError as error:
        raise InvalidValue(
            f"`base_url` {error}; an address looks like https://api.openai.com/v1", param="base_url"
        ) from None
    if origin not in there.all:
        named = ", ".join(there.all[:_MAX_NAMED])
        raise InvalidValue(
            f"`base_url`: `{provider}` has no endpoint at {origin}; a key for it goes to one of {named}",
            param="base_url",
        )
    return Place(base_url=base_url.rstrip("/"), origin=origin, takes_keys=there.takes_keys)


def moved(made_for: str | None, provider: str, there: Origins | None, remedy: str) -> str | None:
    """Why a key made for one origin does not serve where its provider is now; None where it does."""
    if there is None:
        return f"there is no provider `{provider}` any more; delete the key"
    if made_for is not None and made_for in there.all:
        return None
    now = there.own or "an address that cannot be read"
    made = f"made for {made_for}" if made_for is not None else "made for an address unknown now"
    return f"{made}, and `{provider}` is at {now} now; set it again: {remedy}"
