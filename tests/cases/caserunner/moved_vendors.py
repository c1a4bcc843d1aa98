"""A folder's vendors get other addresses, and its vendor keys are set again for them: no key follows its provider."""

from collections.abc import Callable
from pathlib import Path


def move_vendors(folder: Path, moved: Callable[[str, str], str]) -> None:
    """`moved` gives the new address of a provider from its slug and its old one. Nobody serves the folder."""
    from gwd.credentials import keyring, service
    from gwd.credentials.vault import Vault
    from gwd.store.connection import open_connection, transaction

    vault = Vault(keyring.read(folder / "keyring.json"))
    connection = open_connection(str(folder / "gwd.db"), "writer")
    try:
        with transaction(connection, "IMMEDIATE"):
            keys = service.platform_keys(connection, vault, {})
            for slug, base_url in connection.rows("SELECT slug, base_url FROM provider"):
                connection.execute(
                    "UPDATE provider SET base_url = ? WHERE slug = ?", (moved(slug, base_url), slug)
                )
            for key in keys:
                assert key.secret is not None, key.problem
                again = service.CredentialPatch(key=key.secret)
                service.patch(connection, vault, key.id, again, now_us=key.updated_at_us)
    finally:
        connection.raw.close()
