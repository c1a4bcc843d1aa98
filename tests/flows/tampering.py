"""Changes of a node's database that its books must notice, as plain SQL, one to a row."""

# ruff: noqa: E501 - a statement is read as one line

from collections.abc import Callable
from hashlib import sha256

import msgspec

from gwd.audit import chain as audit_chain
from gwd.ledger import chain
from gwd.store.connection import Connection

DAY_US = 86_400_000_000
Tampering = str | Callable[[Connection], None]

ONE = "(SELECT id FROM generation WHERE cost_total_nano > 1000 AND dialect = 'chat_completions' AND byok = 0 LIMIT 1)"
INSURED = "(SELECT id FROM generation WHERE insured = 1)"
BYOK = "(SELECT id FROM generation WHERE byok = 1)"
FACTORED = "(SELECT id FROM generation WHERE price_modifiers IS NOT NULL LIMIT 1)"
RELEASED = "(SELECT id FROM generation WHERE status = 'failed' LIMIT 1)"
USED_PRICE = f"(SELECT price FROM generation WHERE id = {ONE})"
CHARGE = f"generation_id = {ONE} AND type = 'charge'"
SETTLEMENT = f"generation_id = {ONE} AND type = 'settlement'"
LOT = "(SELECT id FROM lot WHERE kind = 'purchased' AND remaining_nano > 1000 LIMIT 1)"
EXPIRING = "(SELECT id FROM lot WHERE expires_at IS NOT NULL AND remaining_nano > 0 LIMIT 1)"
OTHER = "(SELECT id FROM organization ORDER BY created_at DESC LIMIT 1)"
FIRST = "(SELECT id FROM organization ORDER BY created_at LIMIT 1)"
PURCHASE = "(SELECT seq FROM entry WHERE type = 'purchase' AND reference = 'inv-1')"
LINE = "(SELECT id FROM audit WHERE action = 'credit.purchase' LIMIT 1)"


def _swap(connection: Connection) -> None:
    (owner, first), (_, second) = connection.rows(
        "SELECT organization_id, seq FROM entry WHERE type = 'charge' ORDER BY seq LIMIT 2"
    )
    for seq, to in ((first, -1), (second, first), (-1, second)):
        connection.execute(
            "UPDATE entry SET seq = ? WHERE organization_id = ? AND seq = ?", (to, owner, seq)
        )


def _cheaper(connection: Connection) -> None:
    """A nano less charged, and everything that is cached fitted to it."""
    found = connection.row(
        f"SELECT organization_id, seq, lot_id FROM entry WHERE {CHARGE} AND lot_id IS NOT NULL"
    )
    assert found is not None
    owner, seq, lot_id = found
    connection.execute(
        "UPDATE entry SET amount_nano = amount_nano - 1 WHERE organization_id = ? AND seq = ?",
        (owner, seq),
    )
    connection.execute(
        "UPDATE entry SET balance_after_nano = balance_after_nano + 1 WHERE organization_id = ? AND seq >= ?",
        (owner, seq),
    )
    connection.execute(
        "UPDATE account SET pool_nano = pool_nano + 1, spent_nano = spent_nano - 1 WHERE organization_id = ?",
        (owner,),
    )
    connection.execute("UPDATE lot SET remaining_nano = remaining_nano + 1 WHERE id = ?", (lot_id,))


def _first(connection: Connection) -> str:
    row = connection.row(f"SELECT {FIRST}")
    assert row is not None
    return str(row[0])


def _rehash(connection: Connection, owner: str) -> None:
    hash_ = chain.START
    columns = ", ".join(chain.COLUMNS)
    for *row, seal in connection.rows(
        f"SELECT {columns}, seal FROM entry WHERE organization_id = ? ORDER BY seq", (owner,)
    ):
        hash_ = chain.link(hash_, tuple(row), seal)
        connection.execute(
            "UPDATE entry SET hash = ? WHERE organization_id = ? AND seq = ?",
            (hash_, owner, row[1]),
        )
        seq = row[1]
    connection.execute(
        "UPDATE account SET last_hash = ?, last_seq = ? WHERE organization_id = ?",
        (hash_, seq, owner),
    )


def _noted(connection: Connection) -> None:
    connection.execute(f"UPDATE entry SET note = 'a gift' WHERE {CHARGE}")
    _rehash(connection, _first(connection))


def _cut_off(connection: Connection) -> None:
    """The open hold, which is the last entry, as if it had never been."""
    owner = _first(connection)
    held = connection.row(
        "SELECT generation_id, amount_nano, opened_seq FROM reservation WHERE state = 'open'"
    )
    assert held is not None
    connection.execute("DELETE FROM reservation WHERE generation_id = ?", held[:1])
    connection.execute("DELETE FROM entry WHERE organization_id = ? AND seq = ?", (owner, held[2]))
    connection.execute(
        "UPDATE account SET pool_nano = pool_nano + ?1, held_nano = held_nano - ?1, last_at ="
        " (SELECT MAX(created_at) FROM entry WHERE organization_id = ?2) WHERE organization_id = ?2",
        (held[1], owner),
    )
    _rehash(connection, owner)


def _audited(connection: Connection) -> None:
    connection.execute(f"UPDATE audit SET address = '192.0.2.1' WHERE id = {LINE}")
    owner, hash_ = _first(connection), b""
    names = ", ".join(audit_chain.COLUMNS)
    for line in connection.rows(
        f"SELECT {names} FROM audit WHERE organization_id = ? ORDER BY seq", (owner,)
    ):
        hash_ = sha256(hash_ + msgspec.json.encode(line)).digest()
        connection.execute("UPDATE audit SET hash = ? WHERE id = ?", (hash_, line[2]))
    connection.execute("UPDATE audit_end SET hash = ? WHERE organization_id = ?", (hash_, owner))


def _cut_audit(connection: Connection) -> None:
    owner = _first(connection)
    connection.execute(
        "DELETE FROM audit WHERE organization_id = ?1 AND seq ="
        " (SELECT seq FROM audit_end WHERE organization_id = ?1)",
        (owner,),
    )
    connection.execute(
        "UPDATE audit_end SET seq = seq - 1, hash = (SELECT a.hash FROM audit AS a WHERE"
        " a.organization_id = ?1 AND a.seq = audit_end.seq - 1) WHERE organization_id = ?1",
        (owner,),
    )


# What was done, the SQL, and what must be said: the invariant and words of the message.
FOUND: list[tuple[str, Tampering, str, str]] = [
    # entries
    ("a charge made smaller", f"UPDATE entry SET amount_nano = amount_nano - 1 WHERE {CHARGE}", "I16", "hash of its content"),
    ("a note added", f"UPDATE entry SET note = 'gift' WHERE {CHARGE}", "I16", "hash of its content"),
    ("an entry deleted", f"DELETE FROM entry WHERE {CHARGE}", "I16", "follows entry"),
    ("the last entry deleted", f"DELETE FROM entry WHERE organization_id = {FIRST} AND seq = (SELECT last_seq FROM account WHERE organization_id = {FIRST})", "I16", "as its last"),
    ("an entry put in at the end", f"INSERT INTO entry SELECT organization_id, seq + 1, 'led_x', 'purchase', 'funding', 'pool', 5, 'purchased', lot_id, NULL, NULL, NULL, NULL, NULL, NULL, balance_after_nano + 5, created_at, hash, NULL FROM entry WHERE organization_id = {FIRST} ORDER BY seq DESC LIMIT 1", "I16", "hash of its content"),
    ("two entries in another order", _swap, "I16", "hash of its content"),
    ("an entry of another time", f"UPDATE entry SET created_at = created_at - {DAY_US} WHERE {CHARGE}", "I12", "older than the one before"),
    ("an entry of another key", f"UPDATE entry SET key_id = 'key_other' WHERE {SETTLEMENT}", "I17", "another key or workspace than paid"),
    ("an entry of another type", "UPDATE entry SET type = 'grant' WHERE type = 'purchase'", "I16", "hash of its content"),
    ("an entry to another account", f"UPDATE entry SET to_account = 'expired' WHERE {CHARGE}", "I1", "moves from pool to expired"),
    ("an entry without its seal", f"UPDATE entry SET seal = NULL WHERE {SETTLEMENT}", "I16", "hash of its content"),
    ("an entry moved to another organization", f"UPDATE entry SET organization_id = {OTHER}, seq = 1000 WHERE {CHARGE}", "I16", "follows entry"),
    ("an amount with both balances", _cheaper, "I16", "hash of its content"),
    # accounts
    ("free credit from nowhere", "UPDATE account SET pool_nano = pool_nano + 5", "I1", "the accounts sum to 5"),
    ("free credit, funding fitted", "UPDATE account SET pool_nano = pool_nano + 5, funding_nano = funding_nano - 5", "I2", "pool is cached"),
    ("held credit set free", "UPDATE account SET pool_nano = pool_nano + held_nano, held_nano = 0", "I2", "held is cached as 0"),
    ("a debt forgiven", "UPDATE account SET debt_nano = debt_nano + 1", "I4", "debt is cached"),
    ("the last hash", "UPDATE account SET last_hash = x'00'", "I16", "as its last"),
    ("ledger time ahead", f"UPDATE account SET last_at = last_at + {DAY_US}", "I12", "last ledger time"),
    ("no next expiry", "UPDATE account SET next_expiry_at = NULL", "I2", "expire later"),
    # lots
    ("a fuller lot", "UPDATE lot SET remaining_nano = remaining_nano + 1 WHERE id = (SELECT id FROM lot WHERE remaining_nano < amount_nano LIMIT 1)", "I4", "is cached with"),
    ("an emptier lot", f"UPDATE lot SET remaining_nano = 0 WHERE id = {LOT}", "I4", "is cached with"),
    ("a lot that expires later", f"UPDATE lot SET expires_at = expires_at + {DAY_US} WHERE id = {EXPIRING}", "I4", "does not expire when"),
    ("a lot that never expires", f"UPDATE lot SET expires_at = NULL WHERE id = {EXPIRING}", "I4", "does not expire when"),
    ("a lot that expires at last", f"UPDATE lot SET expires_at = created_at + {900 * DAY_US} WHERE id = {LOT}", "I4", "does not expire when"),
    ("a lot of another kind", f"UPDATE lot SET kind = 'purchased' WHERE id = {EXPIRING}", "I4", "is not what entry"),
    ("a lot of another amount", f"UPDATE lot SET amount_nano = amount_nano + 1 WHERE id = {LOT}", "I4", "is not what entry"),
    ("a lot of another time", f"UPDATE lot SET created_at = 0 WHERE id = {LOT}", "I12", "not of the time of entry"),
    ("a lot that paid a debt", f"UPDATE lot SET debt_paid_nano = 1 WHERE id = {LOT}", "I4", "paid another debt"),
    ("a lot moved to another organization", f"UPDATE lot SET organization_id = {OTHER} WHERE id = {LOT}", "I4", "does not exist"),
    ("a lot deleted", f"DELETE FROM lot WHERE id = {LOT}", "I4", "does not exist"),
    # references
    ("a reference forgotten", "DELETE FROM credit_reference WHERE reference = 'inv-1'", "I15", "could be booked again"),
    ("a reference of another entry", "UPDATE credit_reference SET seq = 1, last_seq = 1 WHERE reference = 'inv-1'", "I15", "booked by other entries"),
    # holds
    ("a hold of another amount", "UPDATE reservation SET amount_nano = 1 WHERE state = 'open'", "I3", "its entry another amount"),
    ("a hold closed", "UPDATE reservation SET state = 'closed' WHERE state = 'open'", "I5", "is closed, its entries say otherwise"),
    ("a hold opened again", f"UPDATE reservation SET state = 'open' WHERE generation_id = {ONE}", "I5", "is open, its entries say otherwise"),
    ("a hold deleted", "DELETE FROM reservation WHERE state = 'open'", "I3", "in the ledger alone"),
    ("a hold put in", "INSERT INTO reservation (generation_id, organization_id, key_id, family_id, amount_nano, state, boot_id, created_at, opened_seq) SELECT 'gen-x', organization_id, key_id, family_id, 0, 'open', boot_id, created_at, opened_seq FROM reservation LIMIT 1", "I3", "does not reserve"),
    ("a hold that ended elsewhere", f"UPDATE reservation SET ended_seq = ended_seq - 1 WHERE generation_id = {ONE}", "I5", "as its end"),
    ("a hold that ended at another time", f"UPDATE reservation SET closed_at = 0 WHERE generation_id = {ONE}", "I12", "did not end at the time"),
    ("a hold of another family", f"UPDATE reservation SET family_id = 'key_other' WHERE generation_id = {ONE}", "I17", "another key than its record"),
    ("a hold moved to another organization", f"UPDATE reservation SET organization_id = {OTHER} WHERE generation_id = {ONE}", "I3", "in the ledger alone"),
    # generations
    ("less usage", f"UPDATE generation SET tokens_output = tokens_output - 1 WHERE id = {ONE}", "I10", "for completion by its usage and price"),
    ("usage of another class at the same cost", f"UPDATE generation SET tokens_cache_write_5m = tokens_input, cost_cache_write_nano = cost_prompt_nano, tokens_input = 0, cost_prompt_nano = 0 WHERE id = {ONE}", "I16", "vouches for"),
    ("a part moved to another", f"UPDATE generation SET cost_prompt_nano = cost_prompt_nano - 1, cost_completion_nano = cost_completion_nano + 1 WHERE id = {ONE}", "I10", "for prompt by its usage and price"),
    ("a total of its own", f"UPDATE generation SET cost_total_nano = cost_total_nano - 1 WHERE id = {ONE}", "I11", "add up to"),
    ("a total with its parts", f"UPDATE generation SET cost_total_nano = cost_total_nano - 1, cost_prompt_nano = cost_prompt_nano - 1 WHERE id = {ONE}", "I17", "the ledger charged"),
    ("free after the fact", f"UPDATE generation SET insured = 1, cost_total_nano = 0 WHERE id = {ONE}", "I17", "the ledger charged"),
    ("insurance taken away", f"UPDATE generation SET insured = 0 WHERE id = {INSURED}", "I10", "is insured, or on its owner"),
    ("a cache that saved", f"UPDATE generation SET cache_discount_nano = 5 WHERE id = {ONE}", "I10", "saved None by the cache, not 5"),
    ("a search put in", f"UPDATE generation SET web_searches = 2 WHERE id = {ONE}", "I16", "vouches for"),
    ("another factor", f"UPDATE generation SET price_modifiers = replace(price_modifiers, '3', '4') WHERE id = {FACTORED}", "I10", "dearer than its price says"),
    ("no factor", f"UPDATE generation SET price_modifiers = NULL WHERE id = {FACTORED}", "I10", "by its usage and price"),
    ("a factor that cannot be read", f"UPDATE generation SET price_modifiers = '[1]' WHERE id = {FACTORED}", "I10", "cannot be read"),
    ("another fee", f"UPDATE generation SET fee_bps = 400 WHERE id = {BYOK}", "I10", "for platform_fee"),
    ("a fee on the platform's key", f"UPDATE generation SET fee_bps = 400 WHERE id = {ONE}", "I10", "on which it was not served"),
    ("another price", f"UPDATE generation SET price = (SELECT id FROM price WHERE model = 'demo/claude') WHERE id = {ONE}", "I10", "by its usage and price"),
    ("a price that is not there", f"UPDATE generation SET price = 'prc_x' WHERE id = {ONE}", "I10", "not complete or not there"),
    ("another status", f"UPDATE generation SET status = 'failed' WHERE id = {ONE}", "I17", "failed without a release"),
    ("a failure that succeeded", f"UPDATE generation SET status = 'succeeded' WHERE id = {RELEASED}", "I17", "without a settlement"),
    ("a record of another time", f"UPDATE generation SET settled_at = settled_at - {DAY_US} WHERE id = {ONE}", "I12", "time of its last entry"),
    ("a record of another key", f"UPDATE generation SET key_id = 'key_other' WHERE id = {ONE}", "I17", "another key or workspace"),
    ("a record moved to another organization", f"UPDATE generation SET organization_id = {OTHER} WHERE id = {ONE}", "I17", "another organization than held"),
    ("a record deleted", f"DELETE FROM generation WHERE id = {ONE}", "I17", "has no record"),
    ("a record put in", f"INSERT INTO generation (id, organization_id, key_id, family_id, dialect, status, cost_total_nano, cost_prompt_nano, created_at, settled_at) SELECT 'gen-x', organization_id, key_id, family_id, dialect, 'succeeded', 5, 5, created_at, settled_at FROM generation WHERE id = {ONE}", "I17", "without a settlement"),
    # prices
    ("a cheaper price", f"UPDATE price SET body = replace(body, '0.000002', '0.000001') WHERE id = {USED_PRICE}", "I10", "by its usage and price"),
    ("a price of no words", f"UPDATE price SET body = '{{\"pricing\":{{\"prompt\":\"free\"}}}}' WHERE id = {USED_PRICE}", "I10", "not complete or not there"),
    ("a price deleted", f"DELETE FROM price WHERE id = {USED_PRICE}", "I10", "not complete or not there"),
    # spend
    ("a day spent less", "UPDATE spend SET charged_nano = charged_nano - 1 WHERE day > 0 AND charged_nano > 0", "I12", "not the sum of its charges"),
    ("a lifetime spent less", "UPDATE spend SET charged_nano = 0 WHERE day = 0", "I12", "not the sum of its charges"),
    ("a day on an own key", "UPDATE spend SET byok_nano = 0 WHERE byok_nano > 0", "I12", "not the sum of its charges"),
    ("spend deleted", f"DELETE FROM spend WHERE scope_id = {FIRST}", "I12", "is missing"),
    ("spend moved", "UPDATE spend SET scope_id = 'key_nobody' WHERE scope_id LIKE 'key_%'", "I12", "belongs to nobody"),
    # sums by day
    ("a day's charges made smaller", "UPDATE day_sum SET charged_nano = charged_nano - 1 WHERE charged_nano > 0", "I12", "and the ledger differ"),
    ("a day's tokens made more", "UPDATE day_sum SET tokens_output = tokens_output + 1", "I12", "the records give others"),
    ("a day's failures forgotten", "UPDATE day_sum SET errors = 0 WHERE errors > 0", "I12", "missing or others"),
    ("a day of another key", "UPDATE day_sum SET key_id = 'key_other'", "I12", "key_other"),
    ("a day deleted", "DELETE FROM day_sum WHERE charged_nano > 0", "I12", "missing or others"),
    ("days moved", "UPDATE day_sum SET day = day - 1", "I12", "the records give others"),
    # audit
    ("an audit line changed", f"UPDATE audit SET details = '{{}}' WHERE id = {LINE}", "audit", "hash of its content"),
    ("an audit line of somebody else", f"UPDATE audit SET actor_key_id = 'key_other' WHERE id = {LINE}", "audit", "hash of its content"),
    ("an audit line of another time", f"UPDATE audit SET created_at = created_at + 1 WHERE id = {LINE}", "audit", "hash of its content"),
    ("an audit line deleted", f"DELETE FROM audit WHERE id = {LINE}", "audit", "are missing"),
    ("the last audit line deleted", f"DELETE FROM audit WHERE organization_id = {FIRST} AND seq = (SELECT MAX(seq) FROM audit WHERE organization_id = {FIRST})", "audit", "should end with"),
    ("an audit line put in", f"INSERT INTO audit (id, organization_id, action, subject_type, created_at, seq) SELECT 'aud_x', organization_id, 'credit.grant', 'organization', created_at, seq + 1 FROM audit WHERE organization_id = {FIRST} ORDER BY seq DESC LIMIT 1", "audit", "hash of its content"),
    ("an audit line moved to another organization", f"UPDATE audit SET organization_id = {OTHER}, seq = 1000 WHERE id = {LINE}", "audit", "are missing"),
    # the schema
    ("entries may be edited", "DROP TRIGGER entry_no_update", "schema", "trigger entry_no_update is missing"),
    ("entries may be deleted", "DELETE FROM sqlite_master WHERE name = 'entry_no_delete'", "schema", "trigger entry_no_delete is missing"),
    ("audit lines may be edited", "DROP TRIGGER audit_no_update", "schema", "trigger audit_no_update is missing"),
    ("prices may be edited", "DROP TRIGGER price_no_update", "schema", "trigger price_no_update is missing"),
    ("a trigger that does nothing", "UPDATE sqlite_master SET sql = 'CREATE TRIGGER entry_no_update BEFORE UPDATE ON entry BEGIN SELECT 1; END' WHERE name = 'entry_no_update'", "schema", "trigger entry_no_update is not the one"),
    ("a trigger of somebody else", "CREATE TRIGGER tip AFTER INSERT ON entry BEGIN SELECT 1; END", "schema", "trigger tip is not of this version"),
    ("holds may end twice", "DROP INDEX one_end", "schema", "index one_end is missing"),
    ("an index that orders nothing", "DROP INDEX one_budget; CREATE INDEX one_budget ON budget (spend_id)", "schema", "index one_budget is not the one"),
    ("a rule of a table", "UPDATE sqlite_master SET sql = replace(sql, 'CHECK (amount_nano > 0)', '') WHERE name = 'lot'", "schema", "table lot is not the one"),
]  # fmt: skip

# Whole in themselves afterwards.
ONLY_BY_A_HEAD: list[tuple[str, Callable[[Connection], None], str]] = [
    ("a note added, hashes computed anew", _noted, "the ledger was rewritten"),
    ("the last entries cut off", _cut_off, "the ledger was cut off"),
    ("an audit line changed, hashes computed anew", _audited, "the audit trail was rewritten"),
    ("the last audit line cut off", _cut_audit, "the audit trail was cut off"),
]  # fmt: skip
