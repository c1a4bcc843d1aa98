"""The table of vendor keys; organization_id NULL marks the platform's own."""

import peewee

from gwd.store.fields import JsonField, Table


class CredentialTable(Table):
    id = peewee.TextField(primary_key=True)
    organization_id = peewee.TextField(null=True)
    provider = peewee.TextField()
    name = peewee.TextField()
    label = peewee.TextField()
    sealed = peewee.TextField(null=True)
    key_ref = peewee.TextField(null=True)
    base_url = peewee.TextField(null=True)
    origin = peewee.TextField(null=True)
    sort_order = peewee.BigIntegerField()
    expires_at = peewee.BigIntegerField(null=True)
    disabled = peewee.BooleanField()
    is_fallback = peewee.BooleanField()
    is_required = peewee.BooleanField()
    workspace_id = peewee.TextField(null=True)
    allowed_models = JsonField(null=True)
    allowed_api_key_hashes = JsonField(null=True)
    allowed_user_ids = JsonField(null=True)
    last_used_at = peewee.BigIntegerField(null=True)
    last_error_at = peewee.BigIntegerField(null=True)
    last_error_reason = peewee.TextField(null=True)
    created_at = peewee.BigIntegerField()
    updated_at = peewee.BigIntegerField()

    class Meta:
        table_name = "credential"
