"""The routes about money and what it went for: credits, the ledger, top-up, generations, alerts."""

from typing import Final

from gwd.alerts.service import AlertRecord
from gwd.api import events, generations, money, topup
from gwd.api.access import any_key_with, manage
from gwd.api.route import Route, ask, get, patch, post, walk
from gwd.api.shapes import One, Walked
from gwd.topup import PatchTopUp, TopUpRecord

MONEY_ROUTES: Final[tuple[Route, ...]] = (
    # money
    get("/credits", any_key_with("credits.read"), money.balance),
    walk(
        "/credits/ledger",
        manage("ledger.read"),
        money.list_entries,
        *("from", "to", "type", "generation_id"),
    ),
    post(
        "/credits/grants",
        manage("credits.grant"),
        money.grant,
        money.GrantInput,
        "credit.grant",
    ),
    post(
        "/credits/purchases",
        manage("credits.write"),
        money.purchase,
        money.PurchaseInput,
        "credit.purchase",
    ),
    post(
        "/credits/refunds",
        manage("credits.write"),
        money.refund,
        money.RefundInput,
        "credit.refund",
    ),
    post(
        "/credits/adjustments",
        manage("credits.grant"),
        money.adjust,
        money.AdjustmentInput,
        "credit.adjust",
    ),
    ask("/ledger/verify", manage("ledger.verify"), money.verify, money.VerifyInput),
    get("/ledger/head", manage("ledger.verify"), money.head, "organization_id", "all"),
    get(
        "/credits/auto-topup",
        manage("credits.read"),
        topup.get,
        answers=One[TopUpRecord],
    ),
    patch(
        "/credits/auto-topup",
        manage("credits.write"),
        topup.patch,
        PatchTopUp,
        "auto_topup.patch",
        answers=topup.PatchedTopUp,
    ),
    # activity
    get("/generation", any_key_with("activity.read"), generations.get, "id"),
    walk(
        "/generations",
        manage("activity.read"),
        generations.list_,
        *(*generations.FILTERS, "from", "to"),
    ),
    # alerts
    walk(
        "/notifications/events",
        manage("notifications.read"),
        events.list_,
        *(*events.FILTERS, "from", "to"),
        answers=Walked[AlertRecord],
    ),
)
