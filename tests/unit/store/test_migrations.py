"""A file of an earlier version is brought up to date with what it holds."""

from pathlib import Path

import apsw
import msgspec
import pytest

from gwd import budgets, ledger, proof
from gwd.activity import day_sums
from gwd.activity import service as activity
from gwd.content_log import service as content_log
from gwd.core.clock import SystemClock
from gwd.health import kept
from gwd.ledger import LedgerFilter, chain
from gwd.orgs.settings import settings
from gwd.store import migrations
from gwd.store.connection import Connection, open_connection, transaction
from gwd.store.migrations import migrate
from gwd.vendors.formats import FORMATS
from tests.support.money import ORGANIZATION, USD, add, charge, hold, open_organization
from tests.support.store import NOW_US


def types_of(connection: Connection, generation_id: str) -> list[str]:
    wanted = LedgerFilter(generation_id=generation_id)
    found = ledger.list_entries(connection, ORGANIZATION, wanted, limit=100, offset=0)
    assert found.total == len(found.rows)
    return [entry.type for entry in reversed(found.rows)]


def as_first_version(connection: Connection) -> None:
    """What 0002 did, undone."""
    for column in ("opened_seq", "ended_seq", "last_seq"):
        connection.execute(f"ALTER TABLE reservation DROP COLUMN {column}")
    connection.execute(
        "CREATE INDEX entry_by_generation ON entry (generation_id) WHERE generation_id IS NOT NULL"
    )
    connection.execute("DELETE FROM schema_history WHERE name LIKE '0002%'")


def test_reservations_of_the_first_version_find_their_entries(tmp_path: Path) -> None:
    path = str(tmp_path / "gwd.db")
    migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        open_organization(connection, now_us=NOW_US)
        add(connection, USD, kind="granted", now_us=NOW_US)
        add(connection, 100 * USD, now_us=NOW_US)
        for name in ("gen-open", "gen-settled", "gen-released"):
            hold(connection, name, 5 * USD, now_us=NOW_US)
        ledger.settle(connection, "gen-settled", 3 * USD, now_us=NOW_US)
        ledger.release(connection, "gen-released", now_us=NOW_US)
        as_first_version(connection)
    connection.raw.close()

    assert migrate(path, SystemClock()) == ["0002_entries_of_a_generation"]
    copy = Path(f"{path}.before-0002_entries_of_a_generation")
    assert copy.stat().st_mode & 0o777 == 0o600
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        assert types_of(connection, "gen-open") == ["reservation"]
        assert types_of(connection, "gen-settled") == [
            "reservation",
            "settlement",
            "charge",
            "charge",
        ]
        assert types_of(connection, "gen-released") == ["reservation", "release"]
        assert types_of(connection, "gen-unknown") == []
        again = ledger.settle(connection, "gen-settled", USD, now_us=NOW_US)
        assert (again.first, again.charged_nano) == (False, 3 * USD)
        ledger.settle(connection, "gen-open", USD, now_us=NOW_US)
        assert types_of(connection, "gen-open") == ["reservation", "settlement", "charge"]
    connection.raw.close()


def test_references_that_were_booked_twice_are_known_by_their_first(tmp_path: Path) -> None:
    """Grants of an earlier version may share a reference: all of them stay, and from now on none is added."""
    path = str(tmp_path / "gwd.db")
    migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        open_organization(connection, now_us=NOW_US)
        for reference in ("welcome", None, "welcome"):
            connection.execute("DELETE FROM credit_reference")
            add(connection, USD, kind="granted", reference=reference, now_us=NOW_US)
        for key_id, successor, deleted in (
            ("key_1", "key_2", None),
            ("key_2", "key_3", 1),
            ("key_3", None, None),
            ("key_4", "key_5", None),
            ("key_5", None, 1),
        ):
            connection.execute(
                "INSERT INTO api_key (id, organization_id, family_id, kind, name, label, hash, digest,"
                " rotated_to, created_at, updated_at, deleted_at)"
                " VALUES (?1, ?2, ?1, 'inference', ?1, ?1, ?1, CAST(?1 AS BLOB), ?3, 0, 0, ?4)",
                (key_id, ORGANIZATION, successor, deleted),
            )
        as_before_references(connection)
    connection.raw.close()

    assert migrate(path, SystemClock()) == ["0004_references_and_walks"]
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        first = add(connection, USD, kind="granted", reference="welcome", now_us=NOW_US + 1)
        assert first.seq == 1
        assert ledger.balance(connection, ORGANIZATION, now_us=NOW_US).owned_nano == 3 * USD
        assert connection.rows("SELECT id, rotated_to FROM api_key ORDER BY id") == [
            ("key_1", "key_3"),
            ("key_2", "key_3"),
            ("key_3", None),
            ("key_4", None),
            ("key_5", None),
        ]
    connection.raw.close()


def as_before_references(connection: Connection) -> None:
    """What 0004 did, undone."""
    for kind, name in connection.rows(
        "SELECT type, name FROM sqlite_master WHERE name = 'credit_reference' OR name LIKE 'generation_by_%'"
        " OR name IN ('entry_of_credit', 'audit_by_organization', 'alert_by_organization')"
    ):
        connection.execute(f"DROP {kind} {name}")
    connection.execute(
        "CREATE INDEX generation_by_time ON generation (organization_id, created_at)"
    )
    connection.execute("CREATE INDEX generation_by_key ON generation (family_id, created_at)")
    connection.execute("DELETE FROM schema_history WHERE name LIKE '0004%'")


CONTEXTS = (
    "CREATE TABLE reservation_context (generation_id TEXT PRIMARY KEY, context BLOB, progress BLOB)"
)


def attached(connection: Connection) -> list[str]:
    rows = connection.rows(
        "SELECT type || ' ' || name FROM sqlite_master WHERE tbl_name = 'entry' AND sql IS NOT NULL"
    )
    return sorted(row[0] for row in rows)


def test_the_table_of_entries_is_written_anew_with_all_that_hangs_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "gwd.db")
    (name,) = [each for each in migrations.names() if each.endswith("clock_entries")]
    before = [each for each in migrations.names() if each < name]
    with monkeypatch.context() as earlier:
        earlier.setattr(migrations, "names", lambda: before)
        migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        open_organization(connection, now_us=NOW_US)
        add(connection, 10 * USD, now_us=NOW_US, reference="paid")
        connection.execute(CONTEXTS)  # of the present version, whose functions fill this file
        hold(connection, "gen-1", 5 * USD, now_us=NOW_US)
        charge(connection, "gen-1", 3 * USD, now_us=NOW_US)
        connection.execute("DROP TABLE reservation_context")
        rows, hanging = connection.rows("SELECT * FROM entry"), attached(connection)
    connection.raw.close()

    assert name in migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    assert connection.rows("SELECT * FROM entry") == rows
    assert attached(connection) == sorted([*hanging, "index entry_of_release"])  # since then
    assert len(hanging) > 5
    assert ledger.verify(connection).ok
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        connection.execute("UPDATE entry SET note = 'a gift'")
    copied = "INSERT INTO entry SELECT organization_id, 99, 'led_x', '{}', 'funding', 'pool', 0{} FROM entry LIMIT 1"
    rest = ", bucket, lot_id, 'g', key_id, workspace_id, 'r', note, actor, 0, 0, hash, seal"
    with pytest.raises(apsw.ConstraintError, match="CHECK"):
        connection.execute(copied.format("grant", rest))
    connection.execute(copied.format("clock", rest))
    connection.raw.close()


def test_books_of_before_the_chains_are_vouched_for_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries keep their hashes; lots that may still expire and audit lines are bound as the migration found them."""
    path = str(tmp_path / "gwd.db")
    before = [each for each in migrations.names() if each < "0005"]
    with monkeypatch.context() as earlier:
        earlier.setattr(migrations, "names", lambda: before)
        migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        open_organization(connection, now_us=NOW_US)
        moved = ("funding", "pool", 5, "granted", "lot_1", *[None] * 6, 5, NOW_US)
        row = (ORGANIZATION, 1, "led_1", "grant", *moved)
        hash_ = chain.link(chain.START, row)
        connection.execute(f"INSERT INTO entry VALUES ({', '.join('?' * 18)})", (*row, hash_))
        connection.execute(
            "INSERT INTO lot VALUES ('lot_1', ?, 'granted', 5, 5, 0, ?, ?)",
            (ORGANIZATION, NOW_US + 9, NOW_US),
        )
        connection.execute(
            "UPDATE account SET funding_nano = -5, pool_nano = 5, last_seq = 1, last_hash = ?, next_expiry_at = ?",
            (hash_, NOW_US + 9),
        )
        for line in ("aud_1", "aud_2"):
            connection.execute(
                "INSERT INTO audit (id, organization_id, action, subject_type, created_at)"
                " VALUES (?, ?, 'credit.grant', 'organization', ?)",
                (line, ORGANIZATION, NOW_US),
            )
    connection.raw.close()

    assert "0005_bound_facts" in migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    for change, words in (
        (None, None),
        ("UPDATE lot SET expires_at = expires_at + 1", "does not expire when"),
        ("UPDATE audit SET address = 'x' WHERE id = 'aud_1'", "hash of its content"),
        (
            "UPDATE audit SET details = '{}' WHERE action = 'ledger.bind_lots'",
            "hash of its content",
        ),
    ):
        connection.execute("BEGIN")
        rule = connection.row("SELECT sql FROM sqlite_master WHERE name = 'audit_no_update'")
        assert rule is not None
        connection.execute("DROP TRIGGER audit_no_update")
        if change is not None:
            assert connection.execute(change) > 0
        connection.execute(rule[0])
        said = [each.message for each in proof.verify(connection).differences]
        assert said == [] if words is None else any(words in each for each in said), said
        connection.execute("ROLLBACK")
    connection.raw.close()


def test_providers_take_their_keys_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "gwd.db")
    (name,) = [each for each in migrations.names() if each.endswith("provider_auth")]
    before = [each for each in migrations.names() if each < name]
    with monkeypatch.context() as earlier:
        earlier.setattr(migrations, "names", lambda: before)
        migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    for adapter in (*FORMATS, "unknown_format"):
        connection.execute(
            "INSERT INTO provider (slug, name, adapter, base_url, created_at, updated_at)"
            " VALUES (?1, ?1, ?1, 'https://vendor.example', 1, 1)",
            (adapter,),
        )
    connection.raw.close()

    assert name in migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    found: dict[str, str] = dict(connection.rows("SELECT adapter, auth FROM provider"))
    assert found == {
        "unknown_format": "bearer",
        **{each.name: each.auth for each in FORMATS.values()},
    }
    connection.raw.close()


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "gwd.db")
    migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    connection.execute("INSERT INTO schema_history VALUES ('9999_future', 1)")
    connection.raw.close()
    with pytest.raises(migrations.NewerSchemaError, match="9999_future"):
        migrate(path, SystemClock())


def test_running_generations_keep_what_recovery_needs_and_ended_ones_leave_no_hole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "gwd.db")
    name = "0025_contexts_apart"
    before = [each for each in migrations.names() if each < name]
    with monkeypatch.context() as earlier:
        earlier.setattr(migrations, "names", lambda: before)
        migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        open_organization(connection, now_us=NOW_US)
        connection.execute_many(
            "INSERT INTO reservation (generation_id, organization_id, key_id, family_id, amount_nano, state, boot_id,"
            " context, progress, created_at, closed_at, opened_seq, ended_seq, last_seq)"
            " VALUES (?1, 'org_acme', 'k', 'k', 5, ?2, 'boot_1', ?3, ?4, ?5, ?6, ?7, ?8, ?8)",
            [
                ("gen-1", "closed", None, None, NOW_US, NOW_US + 1, 1, 2),
                ("gen-2", "open", b"{}", b"far", NOW_US, None, 3, None),
                ("gen-3", "open", b"[]", None, NOW_US, None, 4, None),
            ],
        )
    connection.raw.close()

    assert name in migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    held = ledger.open_reservations(connection)
    assert [(one.generation_id, one.boot_id, one.context, one.progress) for one in held] == [
        ("gen-2", "boot_1", b"{}", b"far"),
        ("gen-3", "boot_1", b"[]", None),
    ]
    assert connection.rows(
        "SELECT generation_id, state, boot_id, amount_nano, created_at, closed_at, opened_seq, ended_seq, last_seq"
        " FROM reservation WHERE state = 'closed'"
    ) == [("gen-1", "closed", "", 5, NOW_US, NOW_US + 1, 1, 2, 2)]
    with pytest.raises(apsw.ConstraintError):
        connection.execute("INSERT INTO reservation SELECT * FROM reservation LIMIT 1")
    connection.raw.close()


def test_what_a_cache_saved_before_it_was_kept_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "gwd.db")
    before = [each for each in migrations.names() if each < "0013"]
    with monkeypatch.context() as earlier:
        earlier.setattr(migrations, "names", lambda: before)
        migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        open_organization(connection, now_us=NOW_US)
        connection.execute(
            "INSERT INTO generation (id, organization_id, key_id, family_id, dialect, status, tokens_cache_read,"
            " attempts, created_at, settled_at) VALUES ('gen-1', ?, 'k', 'k', 'messages', 'succeeded', 5, 1, ?, ?)",
            (ORGANIZATION, NOW_US, NOW_US),
        )
    connection.raw.close()

    assert "0013_cache_discount" in migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    row = activity.get(connection, ORGANIZATION, "gen-1")
    assert (row.tokens_cache_read, row.cache_discount_nano) == (5, None)
    connection.raw.close()


def test_keys_of_an_earlier_version_permit_what_they_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "gwd.db")
    before = [each for each in migrations.names() if each < "0012"]
    with monkeypatch.context() as earlier:
        earlier.setattr(migrations, "names", lambda: before)
        migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute(
        "INSERT INTO api_key (id, organization_id, family_id, kind, name, label, hash, digest, allowed_models,"
        " created_at, updated_at) VALUES ('key_1', 'org_1', 'key_1', 'inference', 'old', 'l', 'h', x'00', '[\"a/b\"]',"
        " 1, 1)"
    )
    connection.raw.close()

    assert "0012_key_policy" in migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    assert connection.row(
        "SELECT allowed_models, allowed_providers, ignored_providers, default_provider_sort, data_policy FROM api_key"
    ) == ('["a/b"]', None, "[]", None, "allow")
    connection.raw.close()


def test_a_node_of_before_keeps_its_health_from_now_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "gwd.db")
    name = "0011_health"
    before = [each for each in migrations.names() if each < name]
    with monkeypatch.context() as earlier:
        earlier.setattr(migrations, "names", lambda: before)
        migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        open_organization(connection, now_us=NOW_US)
        add(connection, 10 * USD, now_us=NOW_US, reference="paid")
        columns = "id, provider, name, label, sealed, created_at, updated_at"
        connection.execute(
            f"INSERT INTO credential ({columns}) VALUES ('pk_1', 'p', '', '', 's', 0, 0)"
        )
    connection.raw.close()

    assert name in migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    nothing = kept.Kept(rests=[], endpoints=[])
    assert kept.load(connection) == nothing
    rest = kept.KeptRest(
        endpoint_id="",
        credential_id="pk_1",
        reason="auth_invalid",
        status=401,
        code=None,
        message="no",
        began_us=NOW_US,
        until_us=None,
        is_closed=True,
        throttles=0,
        asked=(1, 2),
    )
    gone = msgspec.structs.replace(rest, credential_id="pk_2")
    kept.keep(connection, kept.Kept(rests=[rest, gone], endpoints=[]))
    assert kept.load(connection) == kept.Kept(rests=[rest], endpoints=[])
    connection.execute("UPDATE credential SET updated_at = ?", (NOW_US + 1,))
    assert kept.load(connection) == nothing
    assert proof.verify(connection).ok
    connection.raw.close()


def test_budgets_of_an_earlier_version_refuse_what_they_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "gwd.db")
    name = "0018_budget_shadow_and_raise"
    before = [each for each in migrations.names() if each < name]
    with monkeypatch.context() as earlier:
        earlier.setattr(migrations, "names", lambda: before)
        migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        open_organization(connection, now_us=NOW_US)
        for kind in ("hard", "soft"):
            connection.execute(
                "INSERT INTO budget (id, organization_id, scope, scope_id, spend_id, interval, kind, limit_nano,"
                " created_at, updated_at) VALUES ('bud_' || ?1, ?2, 'organization', ?2, ?2, 'daily', ?1, 5, 1, 1)",
                (kind, ORGANIZATION),
            )
    connection.raw.close()

    assert name in migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    found = [budgets.get(connection, ORGANIZATION, f"bud_{kind}") for kind in ("hard", "soft")]
    assert [(one.shadow, one.refuses, one.limit_at(NOW_US)) for one in found] == [
        (False, True, 5),
        (False, False, 5),
    ]
    assert [one.raised_until_us for one in found] == [None, None]
    with pytest.raises(apsw.ConstraintError):
        connection.execute("UPDATE budget SET shadow = 1 WHERE kind = 'soft'")
    connection.raw.close()


def test_sums_by_day_hold_what_was_recorded_before_they_were_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "gwd.db")
    name = "0019_day_sums"
    before = [each for each in migrations.names() if each < name]
    with monkeypatch.context() as earlier:
        earlier.setattr(migrations, "names", lambda: before)
        migrate(path, SystemClock())
    columns = (
        "id, organization_id, workspace_id, key_id, family_id, dialect, model, vendor, provider, endpoint_id, status,"
        " tokens_input, tokens_cache_write_5m, tokens_cache_write_1h, tokens_output, cost_completion_nano,"
        " cost_total_nano, ttft_ms, generation_ms, latency_ms, occurrences, created_at, settled_at"
    )
    served = ("ws", "k", "k", "messages", "demo/chat", "demo", "demo", "ep_1")
    refused = (None, "k", "k", "messages", None, None, None, None)
    day_us = 86_400_000_000
    next_us = NOW_US + day_us
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        open_organization(connection, now_us=NOW_US)
        connection.execute_many(
            f"INSERT INTO generation ({columns}) VALUES ({','.join('?' * 23)})",
            [
                ("gen-1", ORGANIZATION, *served, "succeeded", 5, 1, 2, 10, 7, 7, 20, 500, 900, 1, NOW_US, NOW_US),
                ("gen-2", ORGANIZATION, *served, "succeeded", 6, 0, 0, 11, 8, 8, None, 0, 100, 1, NOW_US, NOW_US),
                ("gen-3", ORGANIZATION, *served, "failed", 0, 0, 0, 0, 0, 0, None, None, 50, 1, NOW_US, next_us),
                ("gen-4", ORGANIZATION, *refused, "refused", 0, 0, 0, 0, 0, 0, None, None, 3, 4, NOW_US, NOW_US),
            ],
        )  # fmt: skip
    connection.raw.close()

    assert migrate(path, SystemClock())[0] == name
    connection = open_connection(path, "writer")
    day = NOW_US // day_us
    assert connection.rows(
        "SELECT day, model, requests, errors, refusals, tokens_input, tokens_cache_write, tokens_output,"
        " charged_nano, latency_ms, latencies, ttft_ms, ttfts, generation_ms, timed_tokens FROM day_sum"
    ) == [
        (day, "", 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (day, "demo/chat", 2, 0, 0, 11, 3, 21, 15, 1_000, 2, 20, 1, 500, 10),
        (day + 1, "demo/chat", 1, 1, 0, 0, 0, 0, 0, 50, 1, 0, 0, 0, 0),
    ]
    found = list(day_sums.check(connection, ORGANIZATION))
    assert found == [
        f"the sums of k on day {day} and the ledger differ: its sums charged 15"
    ]  # no entry charges these records
    connection.raw.close()


def test_budgets_may_be_for_names_and_users_have_what_they_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table of budgets is written anew under rows that refer to it; nothing of either is lost."""
    path = str(tmp_path / "gwd.db")
    name = "0021_tags"
    before = [each for each in migrations.names() if each < name]
    with monkeypatch.context() as earlier:
        earlier.setattr(migrations, "names", lambda: before)
        migrate(path, SystemClock())
    day = NOW_US // 86_400_000_000
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        open_organization(connection, now_us=NOW_US)
        add(connection, 100 * USD, now_us=NOW_US)
        connection.execute(
            "INSERT INTO budget (id, organization_id, scope, scope_id, spend_id, interval, kind, limit_nano, shadow,"
            " created_at, updated_at) VALUES ('bud_1', ?1, 'organization', ?1, ?1, 'daily', 'hard', 5, 1, 1, 1)",
            (ORGANIZATION,),
        )
        counted = ("bud_1", day, 1, NOW_US)
        connection.execute(
            "INSERT INTO budget_would_refuse (budget_id, first_day, requests, first_at, last_at)"
            " VALUES (?1, ?2, ?3, ?4, ?4)",
            counted,
        )
        connection.execute(
            "INSERT INTO budget_would_refuse_open (generation_id, budget_id, first_day) VALUES ('gen-x', 'bud_1', ?)",
            (day,),
        )
        for number, user in enumerate(("ann", "ann", "ben", None)):
            hold(connection, f"gen-{number}", USD, now_us=NOW_US)
            ledger.settle(connection, f"gen-{number}", number + 1, now_us=NOW_US)
            connection.execute(
                "INSERT INTO generation (id, organization_id, key_id, family_id, user_tag, dialect, status,"
                " cost_total_nano, byok, cost_completion_nano, created_at, settled_at)"
                " VALUES (?1, ?2, 'k', 'k', ?3, 'messages', 'succeeded', ?4, ?5, 9, ?6, ?6)",
                (f"gen-{number}", ORGANIZATION, user, number + 1, user == "ben", NOW_US),
            )
    connection.raw.close()

    assert migrate(path, SystemClock())[:2] == [name, "0022_named_budgets"]
    connection = open_connection(path, "writer")
    assert connection.rows(
        "SELECT scope_id, day, charged_nano, byok_nano FROM spend WHERE scope_id LIKE '%:%' ORDER BY 1, 2"
    ) == [
        (f"{ORGANIZATION}:user:{user}", each, *nanos)
        for user, nanos in (("ann", (3, 0)), ("ben", (3, 9)))
        for each in (0, day)
    ]
    assert budgets.get(connection, ORGANIZATION, "bud_1").shadow
    assert connection.rows("SELECT budget_id, requests FROM budget_would_refuse") == [("bud_1", 1)]
    assert connection.rows("SELECT generation_id FROM budget_would_refuse_open") == [("gen-x",)]
    with pytest.raises(apsw.ConstraintError):
        connection.execute("DELETE FROM budget")
    copied = "INSERT INTO budget SELECT 'bud_' || ?1, organization_id, ?1, 'x', ?1"
    columns = "interval, kind, limit_nano, include_byok, alert_thresholds, created_at, updated_at"
    copied += (
        f", {columns}, shadow, raised_nano, raised_until, raised_by FROM budget WHERE id = 'bud_1'"
    )
    for scope in ("tag", "user"):
        connection.execute(copied, (scope,))
    with pytest.raises(apsw.ConstraintError):
        connection.execute(copied, ("colour",))
    assert migrations.schema_of(connection) == migrations.schema()
    connection.raw.close()


def test_a_file_without_sessions_takes_them(tmp_path: Path) -> None:
    path = str(tmp_path / "gwd.db")
    migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        fresh = migrations.schema_of(connection)
        connection.execute("DROP TABLE browser_session")
        connection.execute("DROP TABLE sign_in_link")
        connection.execute("DELETE FROM schema_history WHERE name LIKE '0033%'")
    connection.raw.close()

    assert migrate(path, SystemClock()) == ["0033_sessions"]
    connection = open_connection(path, "writer")
    with transaction(connection, "DEFERRED"):
        assert migrations.schema_of(connection) == fresh


def test_organizations_of_an_earlier_version_have_nothing_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "gwd.db")
    name = "0028_content_log"
    before = [each for each in migrations.names() if each < name]
    with monkeypatch.context() as earlier:
        earlier.setattr(migrations, "names", lambda: before)
        migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        open_organization(connection, now_us=NOW_US)
    connection.raw.close()

    assert name in migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    assert settings(connection, ORGANIZATION).settings.content_log is None
    assert content_log.totals(connection, ORGANIZATION).count == 0
    plan = connection.rows(
        "EXPLAIN QUERY PLAN SELECT COUNT(*), SUM(size) FROM content_log WHERE organization_id = 'x'"
    )
    assert "COVERING INDEX" in str(plan)  # the contents are not read to be added up
    connection.raw.close()
