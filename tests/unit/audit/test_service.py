"""The audit trail: what is recorded, who may read it, and that no line is changed or lost."""

import apsw
import msgspec
import pytest

from gwd.audit.service import AuditFilter, Origin, line_record, list_lines, record
from gwd.orgs.organizations import CreatedOrganization
from gwd.store import Connection
from tests.support.people import caller, organization
from tests.support.store import NOW_US, connection

__all__ = ["connection"]


@pytest.fixture
def made(connection: Connection) -> CreatedOrganization:
    return organization(connection)


def actions(connection, made, **wanted) -> list[str]:
    lines, total = list_lines(
        connection, made.organization.id, AuditFilter(**wanted), limit=50, offset=0
    )
    assert total == len(lines)
    return [line.action for line in lines]


def test_a_line_says_who_did_what_to_what_from_where(connection, made):
    record(
        connection,
        caller(made, "owner"),
        "key.create",
        "key",
        "key_1",
        {"name": "ci"},
        now_us=NOW_US,
        origin=Origin(address="127.0.0.1", request_id="req_1"),
    )
    lines, _ = list_lines(connection, made.organization.id, AuditFilter(), limit=1, offset=0)
    shown = msgspec.to_builtins(line_record(lines[0]))
    assert shown.pop("id").startswith("aud_")
    assert shown == {
        "organization_id": made.organization.id,
        "actor_key_id": "mk_test",
        "actor_user_id": made.owner_id,
        "actor_role": "owner",
        "action": "key.create",
        "subject_type": "key",
        "subject_id": "key_1",
        "details": {"name": "ci"},
        "address": "127.0.0.1",
        "request_id": "req_1",
        "created_at": "2026-09-21T14:13:20Z",
    }


def test_lines_are_listed_newest_first_and_filtered(connection, made):
    owner = caller(made, "owner")
    for number, action in enumerate(("key.create", "key.delete", "keyring.add", "member.remove")):
        record(connection, owner, action, action[:3], f"id_{number}", {}, now_us=NOW_US + number)
    record(connection, None, "key.expire", "key", "id_9", {}, now_us=NOW_US)
    assert actions(connection, made) == ["member.remove", "keyring.add", "key.delete", "key.create"]
    assert actions(connection, made, action="key.*") == ["key.delete", "key.create"]
    assert actions(connection, made, action="key.delete") == ["key.delete"]
    assert actions(connection, made, action="k%*") == []
    assert actions(connection, made, subject_id="id_3") == ["member.remove"]
    assert actions(connection, made, from_us=NOW_US + 1, to_us=NOW_US + 3) == [
        "keyring.add",
        "key.delete",
    ]


def test_lines_of_another_organization_are_not_listed(connection, made):
    other = organization(connection, "Other")
    record(connection, caller(other, "owner"), "key.create", "key", "k", {}, now_us=NOW_US)
    operator = caller(made, "operator")
    record(
        connection,
        operator,
        "organization.patch",
        "organization",
        "o",
        {},
        organization_id=other.organization.id,
        now_us=NOW_US + 1,
    )
    assert actions(connection, made) == []
    assert actions(connection, other) == ["organization.patch", "key.create"]


@pytest.mark.parametrize("statement", ["UPDATE audit SET action = 'x'", "DELETE FROM audit"])
def test_the_trail_is_append_only(connection, made, statement):
    record(connection, caller(made, "owner"), "key.create", "key", "k", {}, now_us=NOW_US)
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        connection.execute(statement)
