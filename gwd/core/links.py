"""Where links lead: one function for each page that an alert, an error or a mail names.

`app_url` is where the node's page is, without a slash at its end; it comes from the settings, never from a request.
"""

from typing import Final
from urllib.parse import quote, urlsplit

PAGE_PATH: Final = "/app"


def page_root(app_url: str) -> str:
    """The path under which browsers see the node's own page: that of `app_url`, if it leads there."""
    path = urlsplit(app_url).path
    return path if path.endswith(PAGE_PATH) else PAGE_PATH


def key(app_url: str, key_id: str) -> str:
    return f"{app_url}/keys/{key_id}"


def budget(app_url: str, budget_id: str) -> str:
    return f"{app_url}/budgets/{budget_id}"


def credits(app_url: str) -> str:  # noqa: A001 - the page's own name
    return f"{app_url}/settings/credits"


def model(app_url: str, model_id: str) -> str:
    return f"{app_url}/models/{quote(model_id)}"


def destination(app_url: str, destination_id: str) -> str:
    return f"{app_url}/settings/notifications/{destination_id}"


def notifications(app_url: str) -> str:
    """Where people say which alerts they want."""
    return f"{app_url}/settings/notifications"


def provider_key(app_url: str, credential_id: str) -> str:
    return f"{app_url}/settings/provider-keys/{credential_id}"


def providers(app_url: str) -> str:
    """The node's own credentials."""
    return f"{app_url}/node#providers"


def node(app_url: str) -> str:
    return f"{app_url}/node"


def sign_in(app_url: str, token: str) -> str:
    """Signs a browser in, once."""
    return f"{app_url}/open/{token}"


def invitation(app_url: str, token: str) -> str:
    return f"{app_url}/invitations/accept?token={token}"
