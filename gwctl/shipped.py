"""The catalog that comes with gwctl: vendors with their models, prices and endpoints."""

from pathlib import Path

from gwctl.desired import Entry, read
from gwctl.errors import CommandError


def path() -> Path | None:
    """The catalog inside an installed package, else the one of a checkout."""
    package = Path(__file__).resolve().parent
    for candidate in (package / "catalog.toml", package.parent / "examples" / "catalog.toml"):
        if candidate.is_file():
            return candidate
    return None


def vendors() -> list[str]:
    """Slugs `provider add` knows without further options."""
    found = path()
    if found is None:
        return []
    return [str(entry["slug"]) for entry in read(found).get("providers", [])]


def vendor(slug: str) -> dict[str, list[Entry]] | None:
    """A vendor's providers (`openai`, `openai-embeddings`), their endpoints and models."""
    found = path()
    if found is None:
        return None
    tables = read(found)
    providers = [
        entry
        for entry in tables.get("providers", [])
        if entry["slug"] == slug or entry["slug"].startswith(f"{slug}-")
    ]
    if not any(entry["slug"] == slug for entry in providers):
        return None
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
