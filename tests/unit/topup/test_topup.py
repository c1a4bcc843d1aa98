"""Rules of automatic top-up on a real file."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd import ledger, topup
from gwd.alerts import threshold_alerts
from gwd.alerts.service import AlertFilter, list_events
from gwd.core.clock import us_from_iso
from gwd.core.errors import InvalidValue
from gwd.credentials.keyring import KeyRing
from gwd.credentials.vault import CannotOpenError, Vault
from gwd.ledger import account
from gwd.management import topup as use_case
from gwd.outbound.guard import Rules
from gwd.store.connection import Connection
from gwd.topup.decision import has_room, next_try_us
from tests.support.money import ORGANIZATION, USD, open_organization
from tests.support.store import connection

__all__ = ["connection"]

NOW_US = us_from_iso("2026-11-27T22:00:00Z")
MINUTE_US = 60_000_000
HOUR_US = 60 * MINUTE_US
HOOK = "https://pay.example/hook"


@pytest.fixture(autouse=True)
def _organization(connection: Connection) -> None:
    open_organization(connection, now_us=NOW_US - HOUR_US)


def put(connection: Connection, *, now_us: int = NOW_US, **changes: Any) -> topup.TopUp:
    return topup.patch(
        connection,
        ORGANIZATION,
        msgspec.convert(changes, topup.PatchTopUp),
        sealed_secret="sealed",
        now_us=now_us,
    )


def enable(connection: Connection, *, cap: Decimal | None = None) -> None:
    put(
        connection,
        enabled=True,
        threshold=Decimal(5),
        amount=Decimal(20),
        monthly_cap=cap,
        hook_url=HOOK,
    )


def consider(connection: Connection, owned_usd: int, *, now_us: int = NOW_US) -> str | None:
    return topup.consider(connection, ORGANIZATION, owned_usd * USD, now_us=now_us)


def test_it_is_off_until_somebody_sets_it(connection: Connection) -> None:
    assert consider(connection, 0) is None
    shown = topup.record(topup.get(connection, ORGANIZATION))
    assert msgspec.to_builtins(shown) == {
        "enabled": False,
        "threshold": None,
        "amount": None,
        "monthly_cap": None,
        "hook_url": None,
        "last_attempt": None,
    }


@pytest.mark.parametrize("missing", ["threshold", "amount", "hook_url"])
def test_switching_on_what_is_incomplete_names_what_is_missing(
    connection: Connection, missing: str
) -> None:
    whole: dict[str, Any] = {"threshold": Decimal(5), "amount": Decimal(20), "hook_url": HOOK}
    with pytest.raises(InvalidValue) as refused:
        put(connection, enabled=True, **{**whole, missing: None})
    assert refused.value.param == missing


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"amount": Decimal(0)}, "amount"),
        ({"amount": Decimal(-1)}, "amount"),
        ({"threshold": Decimal("0.0000000001")}, "threshold"),
        ({"amount": Decimal(20), "monthly_cap": Decimal(19)}, "monthly_cap"),
    ],
)
def test_amounts_that_cannot_be_name_their_field(
    connection: Connection, changes: dict[str, Any], param: str
) -> None:
    with pytest.raises(InvalidValue) as refused:
        put(connection, **changes)
    assert refused.value.param == param


def test_absent_is_unchanged_and_null_clears(connection: Connection) -> None:
    enable(connection, cap=Decimal(100))
    put(connection, threshold=Decimal("7.5"))
    put(connection, monthly_cap=None)
    found = topup.get(connection, ORGANIZATION)
    assert (found.enabled, found.threshold_nano, found.amount_nano, found.monthly_cap_nano) == (
        True,
        7_500_000_000,
        20 * USD,
        None,
    )


def test_an_attempt_begins_below_the_threshold_and_only_one_at_a_time(
    connection: Connection,
) -> None:
    enable(connection)
    assert consider(connection, 5) is None
    assert consider(connection, 4) is not None
    assert consider(connection, 3) is None


def test_a_claim_is_for_one_caller_until_its_lease_ends(connection: Connection) -> None:
    enable(connection)
    attempt_id = consider(connection, 0)
    [claimed] = topup.claim_due(connection, now_us=NOW_US)
    assert (claimed.id, claimed.tries, claimed.amount_nano) == (attempt_id, 1, 20 * USD)
    assert (claimed.hook_url, claimed.sealed_secret) == (HOOK, "sealed")
    assert topup.claim_due(connection, now_us=NOW_US + MINUTE_US) == []
    [again] = topup.claim_due(connection, now_us=NOW_US + HOUR_US)
    assert (again.id, again.tries) == (attempt_id, 2)


def test_a_success_adds_purchased_credit_once(connection: Connection) -> None:
    enable(connection)
    attempt_id = consider(connection, 0)
    assert attempt_id is not None
    topup.claim_due(connection, now_us=NOW_US)
    entry = topup.succeed(connection, attempt_id, now_us=NOW_US)
    assert entry is not None
    assert (entry.bucket, entry.amount_nano, entry.reference) == ("purchased", 20 * USD, attempt_id)
    assert topup.succeed(connection, attempt_id, now_us=NOW_US) is None
    assert topup.fail(connection, attempt_id, "late", final=True, now_us=NOW_US) is None
    assert ledger.balance(connection, ORGANIZATION, now_us=NOW_US).owned_nano == 20 * USD
    assert ledger.verify(connection).differences == ()
    shown = topup.record(topup.get(connection, ORGANIZATION)).last_attempt
    assert msgspec.to_builtins(shown) == {
        "at": "2026-11-27T22:00:00Z",
        "status": "succeeded",
        "error": None,
    }


def test_a_payment_that_the_hook_reported_itself_counts_once(connection: Connection) -> None:
    enable(connection)
    attempt_id = consider(connection, 0)
    assert attempt_id is not None
    topup.claim_due(connection, now_us=NOW_US)
    reported = ledger.NewCredit(
        kind="purchased", type="purchase", amount_nano=20 * USD, reference=attempt_id
    )
    ledger.add_credit(connection, ORGANIZATION, reported, now_us=NOW_US)
    topup.succeed(connection, attempt_id, now_us=NOW_US)
    assert ledger.balance(connection, ORGANIZATION, now_us=NOW_US).owned_nano == 20 * USD


def test_failed_tries_wait_longer_and_end_after_four(connection: Connection) -> None:
    enable(connection)
    attempt_id = consider(connection, 0)
    assert attempt_id is not None
    now_us = NOW_US
    waits = []
    for tries in range(1, 5):
        [claimed] = topup.claim_due(connection, now_us=now_us)
        failed = topup.fail(connection, attempt_id, "no answer", final=False, now_us=now_us)
        assert failed is not None
        assert (claimed.tries, failed.tries) == (tries, tries)
        if failed.next_attempt_at_us is None:
            break
        waits.append((failed.next_attempt_at_us - now_us) // MINUTE_US)
        assert topup.claim_due(connection, now_us=failed.next_attempt_at_us - 1) == []
        now_us = failed.next_attempt_at_us
    assert waits == [1, 5, 30]
    assert topup.claim_due(connection, now_us=now_us + HOUR_US) == []
    found = topup.get(connection, ORGANIZATION)
    assert (found.last_attempt_status, found.last_attempt_error) == ("failed", "no answer")


def test_after_a_failure_nothing_is_bought_for_an_hour_unless_the_settings_change(
    connection: Connection,
) -> None:
    enable(connection)
    attempt_id = consider(connection, 0)
    assert attempt_id is not None
    topup.claim_due(connection, now_us=NOW_US)
    topup.fail(connection, attempt_id, "declined", final=True, now_us=NOW_US)
    assert consider(connection, 0, now_us=NOW_US + HOUR_US - 1) is None
    connection.execute("SAVEPOINT patched")
    put(connection, amount=Decimal(10), now_us=NOW_US + 1)
    assert consider(connection, 0, now_us=NOW_US + 2) is not None
    connection.execute("ROLLBACK TO patched")
    assert consider(connection, 0, now_us=NOW_US + HOUR_US) is not None


def test_the_month_s_cap_is_never_exceeded_and_opens_with_the_next_month(
    connection: Connection,
) -> None:
    enable(connection, cap=Decimal(50))
    bought = 0
    for _ in range(4):
        attempt_id = consider(connection, 0)
        if attempt_id is not None:
            topup.claim_due(connection, now_us=NOW_US)
            topup.succeed(connection, attempt_id, now_us=NOW_US)
            bought += 1
    assert bought == 2
    assert consider(connection, 0, now_us=us_from_iso("2026-11-30T23:59:59Z")) is None
    assert consider(connection, 0, now_us=us_from_iso("2026-12-01T00:00:00Z")) is not None


def test_an_attempt_is_dropped_when_top_up_was_switched_off(connection: Connection) -> None:
    enable(connection)
    consider(connection, 0)
    put(connection, enabled=False)
    assert topup.claim_due(connection, now_us=NOW_US) == []
    assert connection.rows("SELECT state, error FROM topup_attempt") == [("failed", "switched off")]


@given(
    st.integers(1, 10**12),
    st.none() | st.integers(1, 10**13),
    st.integers(0, 10**13),
)
def test_what_is_bought_stays_under_the_cap(amount: int, cap: int | None, taken: int) -> None:
    found = has_room(amount_nano=amount, monthly_cap_nano=cap, taken_nano=taken)
    assert found == (cap is None or taken + amount <= cap)


def test_the_ladder_of_tries_ends() -> None:
    assert [next_try_us(tries, now_us=0) for tries in (1, 2, 3, 4, 5)] == [
        MINUTE_US,
        5 * MINUTE_US,
        30 * MINUTE_US,
        None,
        None,
    ]


def test_a_new_hook_gets_a_secret_of_its_own_shown_once(connection: Connection) -> None:
    vault = Vault(KeyRing(active="k1", keks={"k1": b"k" * 32}, pepper=b"p" * 32))

    def change(**changes: Any) -> use_case.PatchedTopUp:
        body = msgspec.convert(changes, topup.PatchTopUp)
        return use_case.patch(connection, vault, ORGANIZATION, body, rules=Rules(), now_us=NOW_US)

    first = change(hook_url=HOOK)
    assert first.signing_secret is not None
    assert change(amount=Decimal(20), hook_url=HOOK).signing_secret is None
    sealed = topup.get(connection, ORGANIZATION).sealed_secret
    assert sealed is not None
    assert vault.open(sealed, use_case.binding(ORGANIZATION, HOOK)) == first.signing_secret
    other = change(hook_url="https://other.example/hook")
    assert other.signing_secret not in (None, first.signing_secret)
    with pytest.raises(CannotOpenError):
        vault.open(sealed, use_case.binding(ORGANIZATION, "https://other.example/hook"))
    change(hook_url=None)
    assert topup.get(connection, ORGANIZATION).sealed_secret is None
    with pytest.raises(InvalidValue) as refused:
        change(hook_url="https://user:word@pay.example/")
    assert refused.value.param == "hook_url"


def test_switching_on_with_little_credit_begins_at_once(connection: Connection) -> None:
    vault = Vault(KeyRing(active="k1", keks={"k1": b"k" * 32}, pepper=b"p" * 32))
    body = topup.PatchTopUp(enabled=True, threshold=Decimal(5), amount=Decimal(20), hook_url=HOOK)
    use_case.patch(connection, vault, ORGANIZATION, body, rules=Rules(), now_us=NOW_US)
    assert len(topup.claim_due(connection, now_us=NOW_US)) == 1


def test_a_top_up_that_the_cap_stops_is_told_once_a_month_and_in_the_last_attempt(
    connection: Connection,
) -> None:
    """In the month it is told again only when cap or amount changed; the next month buys again."""

    def look(now_us: int = NOW_US) -> tuple[list[Any], topup.TopUp]:
        threshold_alerts.consider_topup(
            connection, ORGANIZATION, app_url="https://app", now_us=now_us
        )
        raised, _ = list_events(connection, ORGANIZATION, AlertFilter(), limit=9, offset=0)
        return raised, topup.get(connection, ORGANIZATION)

    enable(connection, cap=Decimal(30))
    begun = consider(connection, 0)
    assert begun is not None
    topup.succeed(connection, begun, now_us=NOW_US)
    connection.execute("UPDATE account SET pool_nano = 0")
    account.invalidate(connection, ORGANIZATION)
    for _ in range(3):
        raised, settings = look(NOW_US + HOUR_US)
        assert len(raised) == 1
    assert raised[0].type == "alert.auto_topup_failed"
    assert raised[0].title == "The automatic top-up of org_acme is stopped by its monthly cap"
    assert raised[0].data["next_attempt_at"] == "2026-12-01T00:00:00Z"
    assert settings.last_attempt_status == "stopped"
    assert settings.last_attempt_error == raised[0].data["reason"]
    assert "monthly_cap of 30 USD: 20 USD were bought this month" in raised[0].data["reason"]
    put(connection, monthly_cap=Decimal(35), now_us=NOW_US + HOUR_US)
    assert len(look(NOW_US + HOUR_US)[0]) == 2
    put(connection, monthly_cap=Decimal(40), now_us=NOW_US + HOUR_US)
    assert len(look(NOW_US + HOUR_US)[0]) == 2
    assert len(topup.claim_due(connection, now_us=NOW_US + HOUR_US)) == 1
