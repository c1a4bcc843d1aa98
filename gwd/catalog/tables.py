"""The catalog's tables as peewee sees them; the schema itself is in store/migrations."""

import peewee

from gwd.store.fields import JsonField, Table


class ProviderTable(Table):
    slug = peewee.TextField(primary_key=True)
    name = peewee.TextField()
    adapter = peewee.TextField()
    base_url = peewee.TextField()
    auth = peewee.TextField()
    headers = JsonField()
    flags = JsonField()
    disabled = peewee.BooleanField()
    created_at = peewee.BigIntegerField()
    updated_at = peewee.BigIntegerField()

    class Meta:
        table_name = "provider"


class ModelTable(Table):
    id = peewee.TextField(primary_key=True)
    name = peewee.TextField()
    vendor = peewee.TextField()
    description = peewee.TextField(null=True)
    family = peewee.TextField(null=True)
    aliases = JsonField()
    context_length = peewee.BigIntegerField()
    max_completion_tokens = peewee.BigIntegerField()
    default_max_tokens = peewee.BigIntegerField(null=True)
    supported_parameters = JsonField()
    input_modalities = JsonField()
    output_modalities = JsonField()
    is_moderated = peewee.BooleanField()
    released_at = peewee.BigIntegerField(null=True)
    deprecated_at = peewee.BigIntegerField(null=True)
    retired_at = peewee.BigIntegerField(null=True)
    successor = peewee.TextField(null=True)
    created_at = peewee.BigIntegerField()
    updated_at = peewee.BigIntegerField()

    class Meta:
        table_name = "model"


class AliasTable(Table):
    name = peewee.TextField(primary_key=True, column_name="alias")
    model = peewee.TextField()

    class Meta:
        table_name = "model_alias"


class EndpointTable(Table):
    id = peewee.TextField(primary_key=True)
    model = peewee.TextField()
    provider = peewee.TextField()
    tag = peewee.TextField()
    upstream_model = peewee.TextField()
    base_url = peewee.TextField(null=True)
    context_length = peewee.BigIntegerField(null=True)
    max_completion_tokens = peewee.BigIntegerField(null=True)
    supported_parameters = JsonField(null=True)
    flags = JsonField()
    weight = peewee.FloatField()
    disabled = peewee.BooleanField()
    draining = peewee.BooleanField()
    created_at = peewee.BigIntegerField()
    updated_at = peewee.BigIntegerField()

    class Meta:
        table_name = "endpoint"


class PriceTable(Table):
    id = peewee.TextField(primary_key=True)
    model = peewee.TextField()
    endpoint_id = peewee.TextField(null=True)
    effective_at = peewee.BigIntegerField()
    body = JsonField()
    created_at = peewee.BigIntegerField()

    class Meta:
        table_name = "price"
