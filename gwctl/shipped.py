"""What comes with gwctl: vendors with their models, prices and endpoints, and presets of further providers."""

from pathlib import Path

from gwctl.desired import Entry, read
from gwctl.errors import CommandError

_CATALOG = "catalog.toml"
_PRESETS = ("providers.toml", "azure.toml")
OWN = "RESOURCE"
"""Stands in the address of a preset for a part that only its user knows."""


def path(name: str = _CATALOG) -> Path | None:
    """A file inside an installed package, else the one of a checkout."""
    package = Path(__file__).resolve().parent
    for candidate in (package / name, package.parent / "examples" / name):
        if candidate.is_file():
            return candidate
    return None


def vendors() -> list[str]:
    """Slugs `provider add` knows without further options."""
    files = [path(name) for name in (_CATALOG, *_PRESETS)]
    tables = [read(found).get("providers", []) for found in files if found is not None]
    return [str(entry["slug"]) for entries in tables for entry in entries]


def vendor(slug: str) -> dict[str, list[Entry]] | None:
    """A vendor's providers (`openai`, `openai-embeddings`), their endpoints and models; of a preset the provider."""
    found = path(_CATALOG)
    if found is None:
        return None
    tables = read(found)
    providers = [
        entry
        for entry in tables.get("providers", [])
        if entry["slug"] == slug or entry["slug"].startswith(f"{slug}-")
    ]
    if not any(entry["slug"] == slug for entry in providers):
        return _preset(slug)
    slugs = {entry["slug"] for entry in providers}
    endpoints = [entry for entry in tables.get("endpoints", []) if entry["provider"] in slugs]
    wanted = {entry["model"] for entry in endpoints}
    by_id = {entry["id"]: entry for entry in tables.get("models", [])}
    for model in sorted(wanted):
        # A retired model's successor has to be there before the model itself.
        while (model := by_id.get(model, {}).get("successor", "")) and model not in wanted:
            wanted.add(model)
    missing = wanted - by_id.keys()
    if missing:
        raise CommandError(f"{found} lacks the model {sorted(missing)[0]}", code="catalog")
    models = [entry for entry in tables.get("models", []) if entry["id"] in wanted]
    return {"providers": providers, "models": models, "endpoints": endpoints}


def _preset(slug: str) -> dict[str, list[Entry]] | None:
    files = [found for name in _PRESETS if (found := path(name)) is not None]
    entries = [entry for found in files for entry in read(found).get("providers", [])]
    chosen = [entry for entry in entries if entry["slug"] == slug]
    return {"providers": chosen, "models": [], "endpoints": []} if chosen else None
