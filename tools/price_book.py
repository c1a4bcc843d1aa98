"""`python -m tools.price_book DAY WHEEL...` writes gwd/catalog/price_book.json from what two packages say of prices.

The wheels are those of genai-prices and litellm, as `pip download --no-deps` leaves them. They are read and never run:
facts alone are taken, and the texts of their licences are kept beside the book. Prices of examples/catalog.toml were
checked by hand and win. Of other models only those are taken that both packages know, with prices on which they agree.
"""

import ast
import json
import re
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BOOK = ROOT / "gwd/catalog/price_book.json"
LICENSES = ROOT / "gwd/catalog/price_book.LICENSES"
# Of each vendor: what the first package calls it, what the second does, how that begins a name, its hosts.
VENDORS = {
    "anthropic": ("anthropic", "anthropic", "", ("api.anthropic.com",)),
    "deepseek": ("deepseek", "deepseek", "deepseek/", ("api.deepseek.com",)),
    "google": ("google", "gemini", "gemini/", ("generativelanguage.googleapis.com",)),
    "minimax": ("minimax", "minimax", "minimax/", ("api.minimax.io",)),
    "mistral": ("mistral", "mistral", "mistral/", ("api.mistral.ai",)),
    "moonshot": ("moonshotai", "moonshot", "moonshot/", ("api.moonshot.ai",)),
    "openai": ("openai", "openai", "", ("api.openai.com",)),
    "xai": ("x-ai", "xai", "xai/", ("api.x.ai",)),
}
FIRST = {
    "input_mtok": "prompt",
    "output_mtok": "completion",
    "cache_read_mtok": "input_cache_read",
    "cache_write_mtok": "input_cache_write",
    "cache_write_1h_mtok": "input_cache_write_1h",
}
SECOND = {
    "input_cost_per_token": "prompt",
    "output_cost_per_token": "completion",
    "cache_read_input_token_cost": "input_cache_read",
    "cache_creation_input_token_cost": "input_cache_write",
    "cache_creation_input_token_cost_above_1hr": "input_cache_write_1h",
    "output_cost_per_reasoning_token": "internal_reasoning",
}
MODES = ("chat", "responses", "embedding")
MILLION = Decimal(1_000_000)

Rates = dict[int, dict[str, Decimal]]
"""Prices by the length that a prompt exceeds (0: any) and by class; `web_search` stands with 0."""


def value(node: ast.expr) -> Any:
    """What a literal says: a call is a mapping of its keywords, with its name under `is`."""
    match node:
        case ast.Call(func=func, args=args, keywords=keywords):
            name = ast.unparse(func)
            if name in ("Decimal", "datetime.date"):
                parts = [ast.literal_eval(arg) for arg in args]
                return Decimal(parts[0]) if name == "Decimal" else date(*parts)
            return {"is": name} | {str(word.arg): value(word.value) for word in keywords}
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [value(element) for element in elements]
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return {value(key): value(held) for key, held in pairs if key is not None}
        case ast.Attribute():
            return ast.unparse(node)
        case _:
            return ast.literal_eval(node)


def first_package(text: str) -> dict[str, dict[str, Any]]:
    """Models by vendor and id."""
    [listed] = [
        node.value
        for node in ast.parse(text).body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "providers"
    ]
    assert listed is not None
    return {each["id"]: {m["id"]: m for m in each["models"]} for each in value(listed)}


def dated(model: dict[str, Any]) -> list[tuple[date | None, Rates]] | None:
    """The prices of a model of the first package, oldest first; None for those that depend on the hour."""
    prices = model.get("prices", [])
    versions = prices if isinstance(prices, list) else [{"prices": prices}]
    found = []
    for version in versions:
        constraint = version.get("constraint") or {}
        if constraint.get("is", "StartDateConstraint") != "StartDateConstraint":
            return None
        found.append((constraint.get("start_date"), first_rates(version["prices"])))
    return sorted(found, key=lambda each: each[0] or date.min)


def first_rates(prices: dict[str, Any]) -> Rates:
    rates: Rates = {0: {}}
    for key, name in FIRST.items():
        price = prices.get(key)
        if isinstance(price, dict):
            for tier in price["tiers"]:
                rates.setdefault(tier["start"], {})[name] = tier["price"] / MILLION
            price = price["base"]
        if price is not None:
            rates[0][name] = price / MILLION
    if "web_searches_kcount" in prices:
        rates[0]["web_search"] = prices["web_searches_kcount"] / 1000
    return rates


def second_rates(model: dict[str, Any]) -> Rates:
    rates: Rates = {0: {}}
    for key, price in model.items():
        base, _, above = key.partition("_above_")
        if above.startswith("1hr"):
            base, above = f"{base}_above_1hr", above.removeprefix("1hr").removeprefix("_above_")
        long = re.fullmatch(r"(\d+)k_tokens", above)
        if base in SECOND and price is not None and (long or not above):
            rates.setdefault(int(long[1]) * 1000 if long else 0, {})[SECOND[base]] = Decimal(price)
    searches = set((model.get("search_context_cost_per_query") or {}).values())
    if len(searches) == 1:
        rates[0]["web_search"] = Decimal(searches.pop())
    for each in rates.values():
        if each.get("internal_reasoning") == rates[0].get("completion"):
            each.pop("internal_reasoning", None)
    return rates


def agreed(first: Rates, second: Rates) -> Rates | None:
    """What both say; None where they differ. A class that one leaves out is the other's, unless that says 0."""
    if first.keys() != second.keys() or not first[0].keys() & second[0].keys() >= {"prompt"}:
        return None
    found: Rates = {}
    for above in sorted(first):
        one, other = first[above], second[above]
        if any(one[name] != other[name] for name in one.keys() & other.keys()):
            return None
        only_one = (one.keys() ^ other.keys()) - {"web_search"}
        both = one.keys() & other.keys()
        found[above] = {
            name: price
            for name, price in sorted((one | other).items())
            if name in both or (name in only_one and price)
        }
    return found


def written(rates: Rates) -> dict[str, Any]:
    def texts(prices: dict[str, Decimal]) -> dict[str, str]:
        return {name: f"{price.normalize():f}" for name, price in prices.items()}

    body: dict[str, Any] = {"pricing": texts(rates[0])}
    tiers = [
        {"above_prompt_tokens": above, "pricing": texts(prices)}
        for above, prices in sorted(rates.items())
        if above
    ]
    return body | ({"pricing_tiers": tiers} if tiers else {})


def of_packages(
    slug: str, name: str, first: dict[str, Any], second: dict[str, Any], day: date
) -> dict[str, Any] | None:
    """A model that both know, or None where it has no price that both say."""
    versions = dated(first)
    now = [rates for start, rates in versions or () if start is None or start <= day]
    prices = agreed(now[-1], second_rates(second)) if now else None
    if prices is None or second.get("mode") not in MODES:
        return None
    is_embedding = second["mode"] == "embedding"
    if "prompt" not in prices[0] or not (is_embedding or "completion" in prices[0]):
        return None
    context = first.get("context_window") or second.get("max_input_tokens")
    retired, successor = second.get("deprecation_date"), second.get("successor_model")
    said = {
        "id": f"{slug}/{name}",
        "name": first.get("name") or name,
        "source": "packages",
        "context_length": int(context) if context else None,
        "max_completion_tokens": 0 if is_embedding else int(second.get("max_output_tokens") or 0),
        "capabilities": sorted(
            key.removeprefix("supports_")
            for key, held in second.items()
            if key.startswith("supports_") and held is True
        ),
        "retired_at": f"{retired}T00:00:00Z" if retired else None,
        "successor": f"{slug}/{successor.rpartition('/')[2]}" if successor else None,
        "prices": [written(prices), *announced(versions or [], day)],
    }
    return {key: held for key, held in said.items() if held not in (None, [], 0)}


def announced(versions: list[tuple[date | None, Rates]], day: date) -> Iterator[dict[str, Any]]:
    for start, rates in versions:
        if start is not None and start > day:
            yield {"effective_at": f"{start}T00:00:00Z", **written(rates)}


def by_hand(model: dict[str, Any], first: dict[str, Any] | None, day: date) -> dict[str, Any]:
    """A model of the shipped catalog, with what is announced and is not its price already."""
    body = {key: model[key] for key in ("pricing", "pricing_tiers") if key in model}
    names = {*body["pricing"]}
    later = [
        version
        for version in announced((dated(first) if first else None) or [], day)
        if any(
            Decimal(version["pricing"][name]) != Decimal(body["pricing"][name])
            for name in names & version["pricing"].keys()
        )
    ]
    # What was never read by hand is no part of it: an extra of the announced price alone.
    for version in later:
        version["pricing"] = {
            name: price for name, price in version["pricing"].items() if name in names
        }
    kept = ("id", "name", "context_length", "max_completion_tokens", "deprecated_at", "retired_at")
    said = {key: model[key] for key in (*kept, "successor") if model.get(key)}
    return {
        **said,
        "source": "catalog",
        "capabilities": sorted(model["supported_parameters"]),
        "prices": [body, *later],
    }


def main() -> int:
    """The command."""
    day = date.fromisoformat(sys.argv[1])
    wheels = {Path(path).name.partition("-")[0]: Path(path) for path in sys.argv[2:]}
    texts = {}
    for name, inside in (
        ("genai_prices", "genai_prices/data.py"),
        ("litellm", "litellm/model_prices_and_context_window_backup.json"),
    ):
        with zipfile.ZipFile(wheels[name]) as wheel:
            texts[name] = wheel.read(inside).decode()
            [place] = [n for n in wheel.namelist() if n.endswith("/licenses/LICENSE")]
            texts[f"{name} license"] = wheel.read(place).decode()
    catalog = tomllib.loads((ROOT / "examples/catalog.toml").read_text("utf-8"))
    vendors = first_package(texts["genai_prices"])
    second = json.loads(texts["litellm"], parse_float=Decimal)
    found: dict[str, Any] = {}
    for slug, (first_name, second_name, begin, _) in VENDORS.items():
        for name, model in vendors[first_name].items():
            other = second.get(f"{begin}{name}") or {}
            if other.get("litellm_provider") == second_name:
                found[f"{slug}/{name}"] = of_packages(slug, name, model, other, day)
    for model in catalog["models"]:
        slug, _, name = model["id"].partition("/")
        found[model["id"]] = by_hand(model, vendors[VENDORS[slug][0]].get(name), day)
    models = [found[name] for name in sorted(found) if found[name]]
    head = {
        "read_at": f"{day}T00:00:00Z",
        "sources": [" ".join(path.name.split("-")[:2]) for _, path in sorted(wheels.items())],
        "hosts": {slug: hosts for slug, (*_, hosts) in VENDORS.items()},
    }
    lines = ",\n".join(json.dumps(model, ensure_ascii=False, sort_keys=True) for model in models)
    BOOK.write_text(json.dumps(head)[:-1] + f',\n"models": [\n{lines}\n]}}\n', "utf-8")
    LICENSES.write_text(
        "Prices and limits in price_book.json are facts taken from these packages.\n"
        + "".join(
            f"\n{'-' * 80}\n{name}\n{'-' * 80}\n{texts[f'{name} license'].strip()}\n"
            for name in sorted(wheels)
        ),
        "utf-8",
    )
    print(f"{len(models)} models, {BOOK.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
