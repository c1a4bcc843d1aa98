"""A credential says which origin it was made for: that of its provider, as far as it is known of those that exist."""

from gwd.core.web_address import origin_of
from gwd.store.connection import Connection

_PLACES = (
    "SELECT credential.id, provider.base_url FROM credential"
    " JOIN provider ON provider.slug = credential.provider"
)


def up(connection: Connection) -> None:
    connection.execute("ALTER TABLE credential ADD COLUMN origin TEXT")
    for credential_id, base_url in connection.rows(_PLACES):
        connection.execute(
            "UPDATE credential SET origin = ? WHERE id = ?", (origin_of(base_url), credential_id)
        )
