"""Automatic top-up where rooms meet: the hook's secret is made, sealed and opened here."""

from urllib.parse import urlsplit

import msgspec

from gwd import ledger, topup
from gwd.credentials.vault import Binding, Vault
from gwd.outbound.guard import Rules, check_literal
from gwd.outbound.signature import new_secret
from gwd.store.connection import Connection


class PatchedTopUp(msgspec.Struct, frozen=True, kw_only=True):
    """The settings as they are now, and the secret of a new hook, shown this once."""

    settings: topup.TopUp
    signing_secret: str | None


def patch(
    connection: Connection,
    vault: Vault,
    organization_id: str,
    changes: topup.PatchTopUp,
    *,
    rules: Rules,
    now_us: int,
    due_us: int | None = None,
) -> PatchedTopUp:
    """Change the settings; a new hook address gets a secret of its own. Credit that is low already is bought soon."""
    secret = sealed = None
    url = changes.hook_url
    if isinstance(url, str) and url != topup.get(connection, organization_id).hook_url:
        check_literal(url, rules, param="hook_url")
        secret = new_secret()
        sealed = vault.seal(secret, binding(organization_id, url))
    settings = topup.patch(
        connection, organization_id, changes, sealed_secret=sealed, now_us=now_us
    )
    owned_nano = ledger.balance(
        connection, organization_id, now_us=now_us, due_us=due_us
    ).owned_nano
    topup.consider(connection, organization_id, owned_nano, now_us=now_us)
    return PatchedTopUp(settings=settings, signing_secret=secret)


def binding(organization_id: str, hook_url: str) -> Binding:
    """What the hook's secret belongs to: this organization and this address's origin."""
    parts = urlsplit(hook_url)
    return Binding(
        purpose="topup_hook",
        organization_id=organization_id,
        row_id=organization_id,
        origin=f"{parts.scheme}://{parts.netloc}",
    )
