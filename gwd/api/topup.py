"""/credits/auto-topup: credit that is bought by itself through a payment hook."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd import topup
from gwd.alerts import threshold_alerts
from gwd.api.management import Answer, Call, one
from gwd.api.money import require_self_service
from gwd.core.errors import InvalidValue
from gwd.core.fields import Secret
from gwd.management import topup as use_cases
from gwd.store import Connection
from gwd.topup import TopUpRecord


class PatchedTopUp(msgspec.Struct, frozen=True, kw_only=True):
    """The settings as they are now, and the secret of a new hook."""

    data: TopUpRecord
    signing_secret: Annotated[
        Secret | UnsetType,
        Meta(description="Only with a new `hook_url`: what signs its calls, shown this once."),
    ] = UNSET

    def __repr__(self) -> str:
        return f"PatchedTopUp(data={self.data!r}, signing_secret=***)"


def get(connection: Connection, call: Call) -> Answer:
    """The settings of automatic top-up."""
    return one(topup.record(topup.get(connection, call.organization_id)))


def patch(connection: Connection, call: Call) -> Answer:
    """Change the settings of automatic top-up.

    A new hook address gets a signing secret of its own, shown here, once.

    A hook that answers yes adds credit, so it is set by whoever may book purchases.
    """
    body: topup.PatchTopUp = call.body
    require_self_service(call)
    _check_scheme(call, body.hook_url)
    patched = use_cases.patch(
        connection,
        call.node.vault,
        call.organization_id,
        body,
        rules=call.node.outbound,
        now_us=call.now_us,
        due_us=call.due_us,
    )
    # Credit that is low already is bought soon; where the cap leaves no room, that is told, and is the last attempt.
    threshold_alerts.consider_topup(
        connection,
        call.organization_id,
        app_url=call.node.app_url,
        now_us=call.now_us,
        due_us=call.due_us,
    )
    settings = patched.settings
    return Answer(
        body=PatchedTopUp(
            data=topup.record(topup.get(connection, call.organization_id)),
            signing_secret=patched.signing_secret or UNSET,
        ),
        subject=("auto_topup", call.organization_id),
        details={
            "enabled": settings.enabled,
            "threshold_nano": settings.threshold_nano,
            "amount_nano": settings.amount_nano,
            "monthly_cap_nano": settings.monthly_cap_nano,
            "new_hook": patched.signing_secret is not None,
        },
    )


def _check_scheme(call: Call, hook_url: str | UnsetType | None) -> None:
    """Told here rather than at the first call, which would be when the money is needed."""
    if (
        isinstance(hook_url, str)
        and hook_url.lower().startswith("http:")
        and not call.node.settings.webhooks.allow_http
    ):
        raise InvalidValue(
            "hook_url must be https; plain http to your own networks needs"
            " [webhooks] allow_http and allow_networks",
            param="hook_url",
        )
