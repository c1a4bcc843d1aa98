"""Privacy and controls: what an organization lets happen, how long it is kept, and the fee for own provider keys."""

from typing import Any, Final

from gwd.page.answer import Done, Shown
from gwd.page.ask import Ask, Doing
from gwd.page.request import Field
from gwd.page.table import Act, Page

_PATH: Final = "/settings/privacy"
_FIELDS: Final = (
    *(Field("forward_retired_models", 1), Field("data_policy", 10)),
    *(Field(name, 20_000) for name in ("allowed_models", "allowed_providers", "ignored_providers")),
    *(Field("default_rate_limit_per_minute", 100), Field("retention_days", 100)),
    *(Field("low_balance_threshold", 100), Field("byok_fee_percent", 100)),
)


def privacy(ask: Ask) -> Shown:
    """The settings; whoever may not change them reads them."""
    values = {
        "settings": ask("/organization/settings")["data"],
        "can": ask.may("settings.write"),
        "sets_fee": ask.may("operator"),
    }
    return Shown(template="privacy.html", values=values)


async def save(doing: Doing) -> Done:
    """What differs from what holds; the fee is the operator's to set."""
    form = doing.form
    body: dict[str, Any] = {
        "forward_retired_models": form.flag("forward_retired_models"),
        "data_policy": form.text("data_policy"),
        "allowed_models": form.names("allowed_models") or None,
        "allowed_providers": form.names("allowed_providers") or None,
        "ignored_providers": form.names("ignored_providers"),
        "default_rate_limit_per_minute": form.whole("default_rate_limit_per_minute"),
        "retention_days": form.whole("retention_days"),
        "low_balance_threshold": form.or_none("low_balance_threshold"),
    }
    if form.text("byok_fee_percent"):
        body["byok_fee_percent"] = form.text("byok_fee_percent")
    known = (await doing.send("GET", "/organization/settings"))["data"]
    changed = {name: value for name, value in body.items() if not _is_same(value, known[name])}
    if changed:
        await doing.send("PATCH", "/organization/settings", changed)
    return Done(path=_PATH, did="saved")


def _is_same(sent: Any, known: Any) -> bool:
    """Whether a field says what holds; amounts are compared as they are written."""
    return sent == known or (isinstance(sent, str) and sent == str(known))


PAGES: Final = (
    Page(
        path=_PATH,
        title="Privacy and controls",
        view=privacy,
        right="settings.read",
        nav="Privacy & controls",
        icon="privacy",
        is_setting=True,
    ),
)
ACTS: Final = (Act(path=_PATH, do=save, right="settings.write", fields=_FIELDS, form=_PATH),)
