"""GET /v1/models in the shape of each vendor."""

from collections.abc import Mapping

from gwd.demo.traits import ModelTraits
from gwd.demo.wire import Json

_RELEASED_S = 1_785_974_400
_RELEASED = "2026-08-06T00:00:00Z"


def list_models(models: Mapping[str, ModelTraits], *, anthropic: bool) -> Json:
    records = [one_model(traits, anthropic=anthropic) for traits in models.values()]
    if not anthropic:
        return {"object": "list", "data": records}
    return {
        "data": records,
        "has_more": False,
        "first_id": records[0]["id"] if records else None,
        "last_id": records[-1]["id"] if records else None,
    }


def one_model(traits: ModelTraits, *, anthropic: bool) -> Json:
    if anthropic:
        return {
            "type": "model",
            "id": traits.name,
            "display_name": traits.name.replace("-", " ").title(),
            "created_at": _RELEASED,
            "lifecycle": "active",
            "max_input_tokens": traits.context_length,
            "max_tokens": traits.max_output,
        }
    return {"id": traits.name, "object": "model", "created": _RELEASED_S, "owned_by": "demo"}
