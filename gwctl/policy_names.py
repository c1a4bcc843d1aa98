"""The models and providers that a file's keys and workspaces name: looked for before the first change is made."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gwctl.catalog import ENDPOINTS, MODELS, PROVIDERS
from gwctl.errors import not_found
from gwctl.records import fetch
from gwctl.session import Session

_LISTS: Mapping[str, str] = {
    "allowed_models": "model",
    "allowed_providers": "provider",
    "ignored_providers": "provider",
}


class PolicyNames:
    """What lists may name: that of the file, and that of the gateway once something is not in the file."""

    def __init__(self, session: Session, wanted: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        self._session = session
        self._known = {
            "model": set(_models(wanted.get("models", ()))),
            "provider": {
                *_providers(wanted.get("providers", ())),
                *_tags(wanted.get("endpoints", ())),
            },
        }
        self._read: set[str] = set()

    def check(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Raises for a name in `after` that nothing has; patterns, and what was there `before`, may stay."""
        for field, noun in _LISTS.items():
            held = before.get(field) or ()
            for name in after.get(field) or ():
                if name not in held and "*" not in name:
                    self._check(noun, name)
        model = after.get("default_text_model")
        if model is not None and model != before.get("default_text_model"):
            self._check("model", str(model).partition(":")[0])

    def _check(self, noun: str, name: str) -> None:
        wanted = name if noun == "model" else name.lower()
        if wanted not in self._known[noun] and noun not in self._read:
            self._read.add(noun)
            self._known[noun] |= set(self._of_gateway(noun))
        if wanted not in self._known[noun]:
            raise not_found(noun, name)

    def _of_gateway(self, noun: str) -> Iterator[str]:
        if noun == "model":
            yield from _models(fetch(self._session, MODELS.path, everything=True)[0])
        else:
            yield from _providers(fetch(self._session, PROVIDERS.path, everything=True)[0])
            yield from _tags(fetch(self._session, ENDPOINTS.path, everything=True)[0])


def _models(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for entry in entries:
        yield str(entry["id"])
        yield from entry.get("aliases") or ()
        if entry.get("family"):
            yield f"~{str(entry['id']).split('/', 1)[0]}/{entry['family']}-latest"


def _providers(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for entry in entries:
        yield str(entry["slug"]).lower()
        yield str(entry.get("name") or "").lower()


def _tags(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for entry in entries:
        yield str(entry.get("tag") or entry["provider"]).lower()
