"""The node, for its operator: how it does, what the doctor finds, providers and organizations."""

from typing import Any, Final

from gwd.core.errors import GatewayError, InvalidValue
from gwd.page.answer import Done, Shown
from gwd.page.ask import Ask, Doing
from gwd.page.table import Act, Page
from gwd.page.words import DID

DID["reloaded"] = "Catalog, vendor keys and certificate were read again."
DID["drains"] = "The endpoint takes no new requests."
DID["provider_answered"] = "The provider answered a test request."


def node(ask: Ask) -> Shown:
    """Status, findings with what helps, providers, endpoints, organizations."""
    status, doctor = ask.live("/operator/status"), ask.live("/operator/doctor")
    values = {
        "status": None if status is None else status["data"],
        "checks": [] if doctor is None else doctor["data"]["checks"],
        "providers": ask.all("/catalog/providers"),
        "credentials": ask.all("/catalog/credentials"),
        "organizations": ask.all("/organizations"),
        "metrics": _metrics(ask),
    }
    return Shown(template="node.html", values=values)


def _metrics(ask: Ask) -> str:
    """Where Prometheus reads."""
    server: Any = ask.visit.node.settings.server
    if server.metrics_port:
        return f"http://{server.metrics_host}:{server.metrics_port}/metrics"
    return ask.visit.node.base_url.removesuffix("/v1").removesuffix("/api") + "/metrics"


async def reload(doing: Doing) -> Done:
    await doing.send("POST", "/operator/reload")
    return Done(path="/node", did="reloaded")


async def drain(doing: Doing) -> Done:
    await doing.send("POST", "/catalog/endpoints/<endpoint>/drain", endpoint=doing.path["endpoint"])
    return Done(path="/node", did="drains")


async def test(doing: Doing) -> Done:
    """Whether a provider answers; what it says otherwise stands above the page."""
    try:
        await doing.send("POST", "/catalog/providers/<slug>/test", slug=doing.path["slug"])
    except GatewayError as error:
        if error.status != 502:
            raise
        raise InvalidValue(f"{doing.path['slug']}: {error.message}") from None
    return Done(path="/node", did="provider_answered")


PAGES: Final = (
    Page(
        path="/node",
        title="Node",
        view=node,
        right="operator",
        live=("/operator/status", "/operator/doctor"),
        nav="Node",
        icon="node",
        is_setting=True,
    ),
)
ACTS: Final = (
    Act(path="/node/reload", do=reload, right="operator", form="/node"),
    Act(path="/node/endpoints/<endpoint>/drain", do=drain, right="catalog.write", form="/node"),
    Act(path="/node/providers/<slug>/test", do=test, right="catalog.write", form="/node"),
)
