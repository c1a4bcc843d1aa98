"""What generations can be grouped and chosen by: each dimension's names, and its SQL."""

from typing import Final, Literal

import msgspec


class Dimension(msgspec.Struct, frozen=True, kw_only=True):
    """`record` is SQL of a record, `day_sum` of a row of the day sums; None where those do not know it.

    Of a `list` a record has any number of values: it counts for each of them, and without any as one that has none.
    `record` is then the column of their JSON.
    """

    name: str
    label: str
    about: str
    record: str
    day_sum: str | None = None
    aliases: tuple[str, ...] = ()
    kind: Literal["text", "flag", "list"] = "text"


_ALL: Final = (
    Dimension(
        name="model",
        label="Model",
        about="The model that served, or was to; null where none was found.",
        record="model",
        day_sum="NULLIF(model, '')",
    ),
    Dimension(
        name="requested_model",
        label="Model asked for",
        about="The model as requests named it.",
        record="requested_model",
    ),
    Dimension(
        name="vendor",
        label="Vendor",
        about="Whose model it is.",
        record="vendor",
        day_sum="NULLIF(vendor, '')",
    ),
    Dimension(
        name="provider",
        label="Provider",
        about="The provider that served, or was to.",
        record="provider",
        day_sum="NULLIF(provider, '')",
    ),
    Dimension(
        name="endpoint",
        label="Endpoint",
        about="The id of the endpoint that served, or was to.",
        record="endpoint_id",
        day_sum="NULLIF(endpoint_id, '')",
    ),
    Dimension(
        name="api_key",
        label="Key",
        about="The id of the key that asked.",
        record="key_id",
        day_sum="key_id",
        aliases=("api_key_id",),
    ),
    Dimension(
        name="workspace",
        label="Workspace",
        about="The id of the key's workspace.",
        record="workspace_id",
        day_sum="NULLIF(workspace_id, '')",
    ),
    Dimension(
        name="user",
        label="User",
        about="The user as the client named them.",
        record="user_tag",
        aliases=("external_user",),
    ),
    Dimension(
        name="session_id",
        label="Session",
        about="The session as the client named it.",
        record="session_id",
    ),
    Dimension(
        name="app",
        label="App",
        about="The app's name as the client gave it, else its address.",
        record="COALESCE(title, referer)",
    ),
    Dimension(
        name="tag",
        label="Tag",
        about="The request's tags, with those of its key and workspace: a request with two counts in both rows.",
        record="tags",
        kind="list",
    ),
    Dimension(
        name="dialect",
        label="Dialect",
        about="The API shape in which it was asked.",
        record="dialect",
    ),
    Dimension(
        name="status",
        label="Status",
        about="How requests ended: succeeded, incomplete, failed, cancelled, refused.",
        record="status",
    ),
    Dimension(
        name="finish_reason",
        label="Finish reason",
        about="Why the output ended.",
        record="finish_reason",
    ),
    Dimension(
        name="byok",
        label="Own vendor key",
        about="Whether an own vendor key served.",
        record="byok",
        day_sum="byok",
        kind="flag",
    ),
    Dimension(
        name="error_code",
        label="Error code",
        about="The code of the error that the client got.",
        record="error_code",
    ),
)

DIMENSIONS: Final[dict[str, Dimension]] = {dimension.name: dimension for dimension in _ALL}
BY_ANY_NAME: Final[dict[str, Dimension]] = {
    name: dimension for dimension in _ALL for name in (dimension.name, *dimension.aliases)
}
