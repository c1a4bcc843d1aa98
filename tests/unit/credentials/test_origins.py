"""A credential goes to the origin that it was made for, and its secret opens for no other place."""

import os
from pathlib import Path
from typing import Any

import pytest

from gwd.catalog import inputs, providers
from gwd.core.clock import SystemClock
from gwd.core.errors import InvalidValue
from gwd.core.web_address import origin_of
from gwd.credentials import keyring, service
from gwd.credentials.service import CredentialInput, CredentialPatch, VendorKey
from gwd.credentials.vault import Binding, Vault
from gwd.store import Connection, migrations
from gwd.store.connection import open_connection, transaction
from gwd.vendors.formats import FORMATS
from tests.support.store import NOW_US

SECRET = "sk-live-4f9c2d71e8ab5533"


@pytest.fixture
def vault() -> Vault:
    return Vault(keyring.fresh())


@pytest.fixture
def connection(tmp_path: Path) -> Any:
    path = str(tmp_path / "gwd.db")
    migrations.migrate(path, SystemClock())
    opened = open_connection(path, "writer")
    with transaction(opened, "IMMEDIATE"):
        add_provider(opened)
        yield opened
    opened.raw.close()


def add_provider(connection: Connection, slug: str = "acme") -> None:
    body = inputs.ProviderInput(
        slug=slug, name=slug, adapter="openai_chat", base_url="https://api.acme.example/v1"
    )
    providers.create(connection, body, formats=FORMATS, allow_http=False, now_us=NOW_US)


def move(connection: Connection, base_url: str) -> None:
    body = inputs.ProviderPatch(base_url=base_url)
    providers.patch(connection, "acme", body, formats=FORMATS, allow_http=False, now_us=NOW_US)


def the_key(connection: Connection, vault: Vault) -> VendorKey:
    (key,) = service.platform_keys(connection, vault, os.environ)
    return key


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("https://API.Acme.example/v1/", "https://api.acme.example:443"),
        ("https://api.acme.example.:443?x=1", "https://api.acme.example:443"),
        ("http://[2001:DB8::0:1]:8080/", "http://[2001:db8::1]:8080"),
        ("ftp://api.acme.example", None),
    ],
)
def test_an_origin_is_scheme_host_and_port(address: str, origin: str | None) -> None:
    assert origin_of(address) == origin


def test_a_key_does_not_follow_its_provider_to_another_origin(
    connection: Connection, vault: Vault
) -> None:
    made = service.create(
        connection, vault, CredentialInput(provider="acme", key=SECRET), now_us=NOW_US
    )
    assert the_key(connection, vault).origin == "https://api.acme.example:443"
    for address in ("https://api.acme.example/v2/?", "https://API.acme.example:443"):
        move(connection, address.rstrip("?"))
        assert the_key(connection, vault).secret == SECRET, address

    for address in (
        "https://api.other.example/v1",
        "https://api.acme.example:8443/v1",
        "http://127.0.0.1/v1",
    ):
        move(connection, address)
        key = the_key(connection, vault)
        assert key.secret is None
        assert not key.is_usable(NOW_US)
        assert key.problem is not None
        assert key.problem.startswith("made for https://api.acme.example:443, and `acme` is at ")
        assert "gwctl provider secret acme" in key.problem
        assert SECRET not in key.problem

    service.patch(connection, vault, made.id, CredentialPatch(name="same key"), now_us=NOW_US)
    assert the_key(connection, vault).secret is None
    service.patch(connection, vault, made.id, CredentialPatch(key=SECRET), now_us=NOW_US)
    key = the_key(connection, vault)
    assert (key.secret, key.origin) == (SECRET, "http://127.0.0.1:80")


def test_a_reference_follows_the_same_rule(
    connection: Connection, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_KEY", SECRET)
    body = CredentialInput(provider="acme", key_ref="env:ACME_KEY")
    service.create(connection, vault, body, now_us=NOW_US)
    assert the_key(connection, vault).secret == SECRET
    move(connection, "https://api.other.example/v1")
    assert the_key(connection, vault).secret is None


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE credential SET id = 'pk_other'",
        "UPDATE credential SET organization_id = 'org_other'",
        "UPDATE credential SET origin = 'https://api.other.example:443'",
        "UPDATE credential SET origin = NULL",
        "UPDATE credential SET sealed = 'gw1.x.y.z'",
    ],
)
def test_a_sealed_key_opens_at_its_own_place_only(
    connection: Connection, vault: Vault, change: str
) -> None:
    service.create(connection, vault, CredentialInput(provider="acme", key=SECRET), now_us=NOW_US)
    body = CredentialInput(provider="acme", key=SECRET + "2", name="second")
    second = service.create(connection, vault, body, now_us=NOW_US + 1)
    connection.execute(
        "INSERT INTO organization (id, name, slug, created_at, updated_at) VALUES ('org_other', 'o', 'o', 1, 1)"
    )
    # The other origin is the provider's, too, so that it is the seal which refuses and nothing before it.
    add_provider(connection, "beside")
    connection.execute(
        "UPDATE provider SET base_url = 'https://api.other.example' WHERE slug = 'acme'"
    )
    connection.execute(f"{change} WHERE name = 'acme'")
    found = [
        *service.platform_keys(connection, vault, os.environ),
        *service.own_keys(connection, vault, os.environ, "org_other"),
    ]
    (moved,) = [key for key in found if key.id != second.id]
    assert moved.secret is None
    assert moved.problem is not None


def test_a_ring_that_does_not_fit_spoils_its_own_keys_only(
    connection: Connection, vault: Vault
) -> None:
    service.create(
        connection, Vault(keyring.fresh()), CredentialInput(provider="acme", key=SECRET), now_us=1
    )
    service.create(connection, vault, CredentialInput(provider="acme", key=SECRET), now_us=2)
    strange, own = service.platform_keys(connection, vault, os.environ)
    assert strange.secret is None
    assert "does not open with this key ring; set it again" in (strange.problem or "")
    assert own.secret == SECRET
    assert service.problems(connection, vault, os.environ, [strange.id, own.id]) == {
        strange.id: strange.problem
    }


def test_credentials_of_before_open_and_are_of_their_providers_origin(
    tmp_path: Path, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "old.db")
    before = [each for each in migrations.names() if each < "0010"]
    with monkeypatch.context() as earlier:
        earlier.setattr(migrations, "names", lambda: before)
        migrations.migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        add_provider(connection)
        for row_id, provider in (("pk_1", "acme"), ("pk_2", "gone")):
            binding = Binding(
                purpose="vendor key", organization_id="", row_id=row_id, origin=provider
            )
            connection.execute(
                "INSERT INTO credential (id, provider, name, label, sealed, created_at, updated_at)"
                " VALUES (?, ?, ?, '…', ?, 1, 1)",
                (row_id, provider, provider, vault.seal(SECRET, binding)),
            )
    connection.raw.close()

    assert "0010_credential_origins" in migrations.migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        kept, orphan = service.platform_keys(connection, vault, os.environ)
        assert (kept.id, kept.secret, kept.problem) == ("pk_1", SECRET, None)
        assert kept.origin == origin_of("https://api.acme.example/v1")
        assert (orphan.secret, orphan.origin) == (None, None)
        assert "no provider `gone`" in (orphan.problem or "")
        move(connection, "https://api.other.example/v1")
        assert service.platform_keys(connection, vault, os.environ)[0].secret is None
    connection.raw.close()


@pytest.mark.parametrize(
    ("key", "address", "is_taken"),
    [
        ("sk-ant-api03-0123456789", "https://api.anthropic.com", True),
        ("sk-ant-api03-0123456789", "https://api.openai.com/v1", False),
        ("sk-ant-api03-0123456789", "https://proxy.example/v1", True),
        ("AIza0123456789abcdef", "https://api.openai.com/v1", False),
        ("AIza0123456789abcdef", "https://generativelanguage.googleapis.com/v1beta", True),
        ("sk-or-v1-0123456789", "https://api.anthropic.com", False),
        ("sk-proj-0123456789ab", "https://api.anthropic.com", True),
        ("AQ.0123456789abcdef", "https://generativelanguage.googleapis.com/v1beta", True),
    ],
)
def test_a_key_that_is_certainly_another_vendors_is_refused(
    connection: Connection, vault: Vault, key: str, address: str, is_taken: bool
) -> None:
    """Only certain mistakes are: keys of forms nobody knows yet go through."""
    move(connection, address)
    body = CredentialInput(provider="acme", key=key)
    if is_taken:
        service.create(connection, vault, body, now_us=NOW_US)
        return
    with pytest.raises(InvalidValue, match="is a key of ") as refusal:
        service.create(connection, vault, body, now_us=NOW_US)
    assert key[-8:] not in str(refusal.value)
    assert service.platform_keys(connection, vault, os.environ) == []
