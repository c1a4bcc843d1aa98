"""Models and endpoints for what a provider's server lists and the catalog lacks."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from gwctl import plan
from gwctl.catalog import ENDPOINTS
from gwctl.desired import Entry
from gwctl.errors import not_found, usage
from gwctl.records import fetch
from gwctl.session import Session
from gwctl.tables import Record
from gwctl.text import counted

DEFAULT_CONTEXT = 4096
"""Taken where neither the list nor the user says one; what Ollama allows on most machines, so nothing is cut off."""
DEFAULT_OUTPUT = 8192
CHAT_PARAMETERS = (
    "max_tokens",
    "temperature",
    "top_p",
    "stop",
    "tools",
    "tool_choice",
    "response_format",
    "structured_outputs",
)
_NOT_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_SHOWN = 20


@dataclass(frozen=True)
class Wanted:
    """What the models shall be, as far as the list does not say it."""

    pricing: dict[str, Any]
    context: int | None
    max_output: int | None
    embeds: bool
    parameters: Sequence[str] | None
    inputs: Sequence[str] | None


def chosen(rows: Sequence[Record], globs: Sequence[str] | None, slug: str) -> list[Record]:
    """The listed models whose names match one of the patterns; without patterns all of them."""
    if not globs:
        return list(rows)
    for pattern in globs:
        if not any(fnmatchcase(str(row["id"]), pattern) for row in rows):
            raise not_found("listed model", pattern, do=f"gwctl provider models {slug}")
    return [row for row in rows if any(fnmatchcase(str(row["id"]), glob) for glob in globs)]


def model_id(slug: str, name: str) -> str:
    """`llama3.2:3b` of ollama as `ollama/llama3.2-3b`: what stands behind the last slash, in the catalog's letters."""
    last = name.rstrip("/").rpartition("/")[2]
    made = _NOT_NAME.sub("-", last).strip("-._")
    if not made:
        raise usage(
            f"{name!r} gives no name for a model",
            do=f"gwctl model add {slug}/NAME, and gwctl endpoint add with --upstream-model",
        )
    return f"{slug}/{made}"


def lacking(session: Session, slug: str, rows: Sequence[Record]) -> list[tuple[str, Record]]:
    """What of the list no endpoint of the provider serves, with the ids that the models will have."""
    served, _ = fetch(session, ENDPOINTS.path, {"provider": slug}, everything=True)
    names = {str(row["upstream_model"]) for row in served}
    taken = {str(row["model"]): str(row["upstream_model"]) for row in served}
    found: list[tuple[str, Record]] = []
    for row in rows:
        name = str(row["id"])
        if name in names or row.get("in_catalog"):
            continue
        made = model_id(slug, name)
        if made in taken:
            raise usage(
                f"{name} and {taken[made]} would both be {made}",
                do="choose one of them with --model, and add the other with gwctl model add",
                code="ambiguous",
            )
        taken[made] = name
        found.append((made, row))
    return found


def tables(
    provider: Record, found: Sequence[tuple[str, Record]], wanted: Wanted
) -> dict[str, list[Entry]]:
    """Models and endpoints as a file would hold them."""
    models = [_model(made, row, provider, wanted) for made, row in found]
    endpoints = [
        {"model": made, "provider": provider["slug"], "upstream_model": row["id"]}
        for made, row in found
    ]
    return {"models": models, "endpoints": endpoints}


def _model(made: str, row: Record, provider: Record, wanted: Wanted) -> Entry:
    context = wanted.context or row.get("context_length") or DEFAULT_CONTEXT
    most = wanted.max_output or row.get("max_completion_tokens") or min(context, DEFAULT_OUTPUT)
    usual = () if wanted.embeds else CHAT_PARAMETERS
    return {
        "id": made,
        "name": row.get("name") or row["id"],
        "vendor": provider["name"],
        "context_length": context,
        "max_completion_tokens": 0 if wanted.embeds else most,
        "supported_parameters": list(usual if wanted.parameters is None else wanted.parameters),
        "input_modalities": list(wanted.inputs or ["text"]),
        "output_modalities": ["embeddings"] if wanted.embeds else ["text"],
        "pricing": wanted.pricing,
    }


def add(
    session: Session,
    provider: Record,
    found: Sequence[tuple[str, Record]],
    wanted: Wanted,
    *,
    accept: bool,
) -> None:
    """Make what is lacking and print it; with --dry-run only say it."""
    slug = str(provider["slug"])
    changes = plan.make(session, tables(provider, found, wanted), only_missing=True)
    without = [row for _, row in found if not (wanted.context or row.get("context_length"))]
    if without:
        session.out.note(
            f"{slug} lists no context length of {counted(len(without), 'model')}:"
            f" {DEFAULT_CONTEXT:,} tokens are taken; --context N says another"
        )
    results = []
    if session.dry_run:
        session.found_changes = bool(changes)
        results = [plan.as_json(change) for change in changes]
    else:
        slip = next((change.slip for change in changes if change.slip), "")
        if slip and not accept:
            session.accept_price(slip)
        results = [r for _, r in plan.apply(session, changes, accept=accept or bool(slip))]
    if session.out.shape.machine:
        session.out.data(results)
        return
    for made, row in found[:_SHOWN]:
        session.out.line(f"+ {made}   {row['id']}")
    if len(found) > _SHOWN:
        session.out.line(f"… and {len(found) - _SHOWN:,} more")
    if session.dry_run:
        session.out.note("Nothing was done.")
        return
    kinds = [change.kind.table for change in changes]
    made_line = ", ".join(
        counted(kinds.count(table), table[:-1])
        for table in ("models", "endpoints")
        if table in kinds
    )
    session.out.line(f"{slug}: {made_line} added")
    verb = "embed" if wanted.embeds else "chat"
    session.out.note(f"try it: gwctl {verb} {found[0][0]} hello")
