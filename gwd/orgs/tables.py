"""The tables of this room, for management and lists; the schema itself is in the store's migrations."""

import peewee

from gwd.store.fields import JsonField, Table


class OrganizationRow(Table):
    id = peewee.TextField(primary_key=True)
    name = peewee.TextField()
    slug = peewee.TextField()
    settings = JsonField()
    revision = peewee.IntegerField()
    suspended = peewee.BooleanField()
    created_at = peewee.IntegerField()
    updated_at = peewee.IntegerField()
    deleted_at = peewee.IntegerField(null=True)

    class Meta:
        table_name = "organization"


class WorkspaceRow(Table):
    id = peewee.TextField(primary_key=True)
    organization_id = peewee.TextField()
    name = peewee.TextField()
    slug = peewee.TextField()
    description = peewee.TextField(null=True)
    created_by = peewee.TextField(null=True)
    default_provider_sort = peewee.TextField(null=True)
    default_text_model = peewee.TextField(null=True)
    include_byok_in_budgets = peewee.BooleanField()
    tags = JsonField()
    created_at = peewee.IntegerField()
    updated_at = peewee.IntegerField()
    deleted_at = peewee.IntegerField(null=True)

    class Meta:
        table_name = "workspace"


class MemberRow(Table):
    id = peewee.TextField(primary_key=True)
    organization_id = peewee.TextField()
    email = peewee.TextField()
    first_name = peewee.TextField(null=True)
    last_name = peewee.TextField(null=True)
    role = peewee.TextField()
    joined_at = peewee.IntegerField()
    removed_at = peewee.IntegerField(null=True)

    class Meta:
        table_name = "member"


class WorkspaceMemberRow(Table):
    workspace_id = peewee.TextField()
    user_id = peewee.TextField()
    is_lead = peewee.BooleanField()
    added_at = peewee.IntegerField()

    class Meta:
        table_name = "workspace_member"
        primary_key = peewee.CompositeKey("workspace_id", "user_id")
