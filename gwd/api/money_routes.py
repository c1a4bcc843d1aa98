"""The routes about money and what it went for: credits, the ledger, top-up, generations, analytics."""

from typing import Final

from gwd.activity.analytics import AnalyticsQuery
from gwd.activity.at_vendors import VendorUsage
from gwd.activity.by_day import ActivityRecord
from gwd.activity.record import GenerationRecord
from gwd.api import analytics, generations, money, statements, topup, vendor_usage
from gwd.api.access import ANY_KEY, any_key_with, manage
from gwd.api.query import BETWEEN
from gwd.api.route import LiveRoute, Route, get, patch, post, report, walk
from gwd.api.shapes import Listed, One, Walked
from gwd.ledger import BalanceRecord, EntryRecord, Verification
from gwd.management.statements import StatementRecord
from gwd.proof import Head
from gwd.topup import PatchTopUp, TopUpRecord

MONEY_ROUTES: Final[tuple[Route, ...]] = (
    # money
    get("/credits", any_key_with("credits.read"), money.balance, answers=One[BalanceRecord]),
    walk(
        "/credits/ledger",
        manage("ledger.read"),
        money.list_entries,
        *(*BETWEEN, *money.FILTERS),
        answers=Walked[EntryRecord],
    ),
    post(
        "/credits/grants",
        manage("credits.grant"),
        money.grant,
        money.GrantInput,
        "credit.grant",
        answers=money.Booked,
        status=201,
        also=200,
        fails=(404,),
    ),
    post(
        "/credits/purchases",
        manage("credits.write"),
        money.purchase,
        money.PurchaseInput,
        "credit.purchase",
        answers=money.Booked,
        status=201,
        also=200,
        fails=(404,),
    ),
    post(
        "/credits/refunds",
        manage("credits.write"),
        money.refund,
        money.RefundInput,
        "credit.refund",
        answers=money.Booked,
        status=201,
        also=200,
        fails=(404,),
    ),
    post(
        "/credits/adjustments",
        manage("credits.grant"),
        money.adjust,
        money.AdjustmentInput,
        "credit.adjust",
        answers=money.Booked,
        status=201,
        also=200,
        fails=(404,),
    ),
    get(
        "/ledger/head",
        manage("ledger.verify"),
        money.head,
        *money.WHOSE_BOOKS,
        answers=One[Head],
        fails=(404,),
    ),
    get(
        "/statements/<month>",
        manage("ledger.read"),
        statements.get,
        money.WHOSE,
        answers=One[StatementRecord],
    ),
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
    get(
        "/generation",
        any_key_with("activity.read"),
        generations.get,
        generations.BY_ID,
        answers=One[GenerationRecord],
        fails=(404,),
    ),
    walk(
        "/generations",
        manage("activity.read"),
        generations.list_,
        *(*generations.FILTERS, *BETWEEN, generations.COUNT),
        answers=Walked[GenerationRecord],
    ),
    # added up
    report(
        "/analytics/query",
        manage("activity.read"),
        analytics.query,
        shape=AnalyticsQuery,
        answers=One[analytics.AnalyticsAnswer],
    ),
    get(
        "/analytics/meta",
        manage("activity.read"),
        analytics.meta,
        answers=One[analytics.AnalyticsMeta],
    ),
    get(
        "/activity",
        manage("activity.read"),
        analytics.activity,
        *analytics.ACTIVITY,
        answers=Listed[ActivityRecord],
    ),
    report(
        "/key/usage",
        ANY_KEY,
        analytics.key_usage,
        *analytics.KEY_USAGE,
        answers=One[analytics.AnalyticsAnswer],
    ),
    get(
        "/vendor-usage",
        manage("ledger.read"),
        vendor_usage.get,
        *vendor_usage.QUERY,
        answers=One[VendorUsage],
    ),
)

LEDGER_VERIFY: Final = LiveRoute(
    method="POST",
    path="/ledger/verify",
    access=manage("ledger.verify"),
    handler=money.verify,
    shape=money.VerifyInput,
    reads=True,
    answers=One[Verification],
    fails=(404,),
)
