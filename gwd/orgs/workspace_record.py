"""The records of workspaces and of the members in them, as the API shows them."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gwd.core.clock import iso
from gwd.core.fields import Id, Moment, Slug
from gwd.orgs.members import MemberRole
from gwd.orgs.policy import Sort
from gwd.orgs.workspaces import Workspace, WorkspaceMember


class WorkspaceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an organization with its own keys, people, defaults and budgets.

    Fields that are always the same stand there for clients that look for them.
    """

    id: Annotated[Id, Meta(description="`ws_…`")]
    name: Annotated[str, Meta(description="What people call the workspace.")]
    slug: Annotated[
        Slug,
        Meta(description="Its short name in the organization; taken in paths wherever `id` is."),
    ]
    description: Annotated[str | None, Meta(description="What it is for; null if nobody said.")]
    created_by: Annotated[
        Id | None, Meta(description="The member who made it; null if no member did.")
    ]
    default_provider_sort: Annotated[
        Sort | None,
        Meta(
            description="By what requests of its keys prefer providers unless they or the key say so; null for the"
            " organization's."
        ),
    ]
    default_text_model: Annotated[
        str | None,
        Meta(
            description="The model of requests that name none, embeddings excepted; null where such requests are"
            " refused."
        ),
    ]
    default_image_model: Annotated[None, Meta(description="Always null.")] = None
    default_guardrail_id: Annotated[None, Meta(description="Always null.")] = None
    include_byok_in_budgets: Annotated[
        bool,
        Meta(
            description="Whether its new budgets count inference through own provider keys, at its list price."
        ),
    ]
    tags: Annotated[
        list[str],
        Meta(description="Tags that every request of its keys bears beside its own and the key's."),
    ]
    io_logging_api_key_ids: Annotated[
        None,
        Meta(
            description="Always null: `content_log` of the organization's settings says what is stored."
        ),
    ] = None
    io_logging_sampling_rate: Annotated[
        Literal[1], Meta(description="Always 1; nothing is sampled.")
    ] = 1
    is_data_discount_logging_enabled: Annotated[
        Literal[False], Meta(description="Always false.")
    ] = False
    is_observability_broadcast_enabled: Annotated[
        Literal[False], Meta(description="Always false.")
    ] = False
    is_observability_io_logging_enabled: Annotated[
        Literal[False],
        Meta(description="Always false: prompts and answers are sent to no observer."),
    ] = False
    created_at: Annotated[Moment, Meta(description="When it was made.")]
    updated_at: Annotated[Moment, Meta(description="When it was last changed.")]


class WorkspaceMemberRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A member inside a workspace."""

    id: Annotated[Id, Meta(description="The member, `usr_…`.")]
    user_id: Annotated[Id, Meta(description="The same as `id`.")]
    email: Annotated[str | None, Meta(description="The member's address; null if none is known.")]
    role: Annotated[
        MemberRole, Meta(description="What the member may do in the whole organization.")
    ]
    is_lead: Annotated[
        bool, Meta(description="Whether the member leads it: an admin inside this workspace.")
    ]
    added_at: Annotated[Moment, Meta(description="When the member was put into it.")]


def record(workspace: Workspace) -> WorkspaceRecord:
    """The workspace as the API shows it."""
    return WorkspaceRecord(
        id=workspace.id,
        name=workspace.name,
        slug=workspace.slug,
        description=workspace.description,
        created_by=workspace.created_by,
        default_provider_sort=workspace.default_provider_sort,
        default_text_model=workspace.default_text_model,
        include_byok_in_budgets=workspace.include_byok_in_budgets,
        tags=workspace.tags,
        created_at=iso(workspace.created_at),
        updated_at=iso(workspace.updated_at),
    )


def member_record(member: WorkspaceMember) -> WorkspaceMemberRecord:
    """A workspace's member as the API shows it."""
    return WorkspaceMemberRecord(
        id=member.user_id,
        user_id=member.user_id,
        email=member.email or None,
        role=member.role,
        is_lead=member.is_lead,
        added_at=iso(member.added_at),
    )
