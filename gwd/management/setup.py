"""A new node's first rows: organization, workspace, owner, operator key, credit; and the check of its key ring."""

import hmac
from decimal import Decimal
from typing import Final

import msgspec

from gwd import ledger
from gwd.audit import service as audit
from gwd.core.caller import Caller
from gwd.core.errors import InvalidValue
from gwd.core.money import MoneyError, nano_from_usd
from gwd.credentials.keyring import KeyRing
from gwd.credentials.vault import Vault
from gwd.keys import service as keys
from gwd.orgs import organizations
from gwd.store import Connection

OPERATOR_KEY_NAME: Final = "operator"

_RING_CHECK: Final = "keyring_check"


class NewNode(msgspec.Struct, frozen=True, kw_only=True):
    """What `gwd init` is told. Without an owner's address mails to the owner are skipped."""

    organization: str
    owner_email: str | None = None
    credit_usd: Decimal | None = None


class CreatedNode(msgspec.Struct, frozen=True, kw_only=True):
    """What was made; the key's plaintext exists only here."""

    organization_id: str
    workspace_id: str
    operator: Caller
    management_key: str

    def __repr__(self) -> str:
        return f"CreatedNode(organization_id={self.organization_id!r}, management_key=***)"


class WrongKeyRingError(RuntimeError):
    """The database belongs to another key ring; the text says what to restore."""


def create_node(
    connection: Connection, new: NewNode, ring: KeyRing, *, rate_limit_ceiling: int, now_us: int
) -> CreatedNode:
    """Fill an empty, migrated database. Raises InvalidValue for a name, address or amount that cannot be."""
    credit_nano = _credit_nano(new.credit_usd)
    connection.execute(
        "INSERT INTO node_fact (name, value) VALUES (?, ?)",
        (_RING_CHECK, Vault(ring).check_value()),
    )
    made = organizations.create(
        connection,
        organizations.CreateOrganization(name=new.organization, owner_email=new.owner_email),
        now_us=now_us,
    )
    organization_id = made.organization.id
    ledger.open_account(connection, organization_id, now_us=now_us)
    operator, management_key = _issue_operator_key(
        connection, made.organization, ring, rate_limit_ceiling=rate_limit_ceiling, now_us=now_us
    )
    if credit_nano:
        ledger.add_credit(
            connection,
            organization_id,
            ledger.NewCredit(
                kind="purchased",
                type="purchase",
                amount_nano=credit_nano,
                note="credit of gwd init",
                actor=operator.key_id,
            ),
            now_us=now_us,
        )
    return CreatedNode(
        organization_id=organization_id,
        workspace_id=made.workspace_id,
        operator=operator,
        management_key=management_key,
    )


def new_operator_key(
    connection: Connection, ring: KeyRing, *, rate_limit_ceiling: int, now_us: int
) -> str:
    """One more operator key, in the node's oldest organization: for the machine's owner who lost theirs."""
    check_ring(connection, ring)
    oldest, _ = organizations.list_organizations(connection, limit=1, offset=0)
    _, management_key = _issue_operator_key(
        connection, oldest[0], ring, rate_limit_ceiling=rate_limit_ceiling, now_us=now_us
    )
    return management_key


def check_ring(connection: Connection, ring: KeyRing) -> None:
    """Raises WrongKeyRingError unless the database was made with this ring's pepper."""
    row = connection.row("SELECT value FROM node_fact WHERE name = ?", (_RING_CHECK,))
    if row is None:
        raise WrongKeyRingError(
            "the database holds no node; make one with `gwd init` or restore a backup"
        )
    if not hmac.compare_digest(row[0], Vault(ring).check_value()):
        raise WrongKeyRingError(
            "the key ring is not the one this database was made with; restore keyring.json from your copy"
        )


def _issue_operator_key(
    connection: Connection,
    organization: organizations.Organization,
    ring: KeyRing,
    *,
    rate_limit_ceiling: int,
    now_us: int,
) -> tuple[Caller, str]:
    """The key as the caller it will be, and its plaintext. The machine's owner acts, so nobody signs the audit line."""
    installer = Caller(
        kind="management",
        key_id="",
        key_name="",
        family_id="",
        organization_id=organization.id,
        workspace_id=None,
        user_id=organization.owner_user_id,
        role="operator",
    )
    issued = keys.create(
        connection,
        organization.id,
        keys.CreateKey(name=OPERATOR_KEY_NAME, type="management", role="operator"),
        actor=installer,
        issuing=keys.Issuing(pepper=ring.pepper, rate_limit_ceiling=rate_limit_ceiling),
        now_us=now_us,
    )
    audit.record(
        connection,
        None,
        "key.create",
        "key",
        issued.key.id,
        {"name": issued.key.name, "type": "management", "role": "operator"},
        organization_id=organization.id,
        now_us=now_us,
    )
    operator = msgspec.structs.replace(
        installer,
        key_id=issued.key.id,
        key_name=issued.key.name,
        family_id=issued.key.family_id,
    )
    return operator, issued.plaintext


def _credit_nano(amount: Decimal | None) -> int:
    if amount is None:
        return 0
    try:
        return nano_from_usd(amount)
    except MoneyError as error:
        raise InvalidValue(f"credit {error}", param="credit") from None
