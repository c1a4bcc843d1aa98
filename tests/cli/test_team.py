"""A whole team in one command: nothing shown once is lost, and the command can be repeated."""

import json
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.gateway import SECRET, Answer, FakeGateway, Received, error

LINK = "https://gw/accept?token=t0k3n"
WORDS = ("workspace", "create", "web", "--lead", "a@b.example", "--key-limit", "50")


@pytest.fixture
def node(gateway: FakeGateway) -> FakeGateway:
    """A gateway that keeps workspaces, invitations and keys as the real one does."""
    gateway.collection("/workspaces")
    gateway.collection("/organization/members")
    gateway.collection("/keys", prefix="key_")
    invitations = gateway.collection("/organization/invitations", prefix="inv_")

    def invite(request: Received) -> Answer:
        row = {"id": f"inv_{len(invitations.rows)}", "status": "pending", **request.body}
        invitations.rows.append(row)
        return Answer({"accept_url": LINK, "data": row}, 201)

    gateway.on("POST", "/organization/invitations", invite)
    return gateway


def test_quiet_prints_link_and_key_each_alone(run: Run, node: FakeGateway) -> None:
    assert run(*WORDS, "-q").out == f"{LINK}\n{SECRET}\n"
    assert run("workspace", "create", "b", "--lead", "b@b.example", "-q").out == f"{LINK}\n"


def test_it_can_be_repeated(run: Run, node: FakeGateway) -> None:
    assert run(*WORDS, "--if-absent").code == 0
    made = node.writes()
    assert len(made) == 3
    code, out, err = run(*WORDS, "--if-absent", "-q")
    assert (code, out) == (0, "")
    assert "a@b.example is invited" in err
    assert "key web exists" in err
    assert node.writes() == [*made, ("POST", "/keys")]
    assert len(node.collections["/keys"].rows) == 1
    assert run(*WORDS, "--if-absent", "--dry-run").code == 0


def test_after_a_failure_the_rest_is_made(run: Run, node: FakeGateway) -> None:
    node.on("POST", "/keys", error(500, "internal_error", "Oh."))
    code, out, _ = run(*WORDS, "--json")
    assert code == 1
    assert json.loads(out)["accept_url"] == LINK
    del node.scripts["POST", "/keys"]
    assert run(*WORDS, "--if-absent", "-q").out == f"{SECRET}\n"
    assert [path for _, path in node.writes()].count("/organization/invitations") == 1


def test_a_member_is_not_invited_again(run: Run, node: FakeGateway) -> None:
    person = {"id": "usr_1", "email": "a@b.example"}
    node.collections["/organization/members"].rows.append(person)
    code, _, err = run(*WORDS, "--if-absent")
    assert code == 0
    assert "is a member already" in err


def test_a_key_of_that_name_elsewhere_does_not_count(run: Run, node: FakeGateway) -> None:
    row: dict[str, Any] = {"id": "key_7", "name": "web", "workspace_id": "ws_other"}
    node.collections["/keys"].rows.append(row)
    assert SECRET in run(*WORDS, "--if-absent").out


@pytest.mark.parametrize("address", ["ada", "a b@c.example", "", "@", "a@b\x07.example"])
def test_a_bad_address_is_refused_before_anything_is_made(
    run: Run, node: FakeGateway, address: str
) -> None:
    assert run("workspace", "create", "web", "--lead", address).code == 2
    assert node.writes() == []


def test_what_was_shown_before_is_no_empty_line(run: Run, node: FakeGateway) -> None:
    reply = {"key": None, "data": {"id": "key_1", "name": "web"}}
    node.on("POST", "/keys", Answer(reply, 201))
    code, out, err = run("workspace", "create", "web", "--key-limit", "5", "-q")
    assert (code, out) == (1, "")
    assert "was already shown" in err
