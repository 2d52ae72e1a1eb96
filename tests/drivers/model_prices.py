"""The prices of models, as a snapshot of the package `genai-prices`.

    uv run --group test python -m tests.drivers.model_prices

Writes ``layers/core/python/dualtrack/models/model_prices.json``, with the day and the package's licence. No function
loads the package or asks for prices: a release has those of its day. Of the package's matching rules only whole names
are taken: ids, aliases and, where a rule takes them, names behind which a day stands (``-YYYYMMDD``).
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from importlib.metadata import distribution, version
from typing import TYPE_CHECKING, Any, Final, get_args

from anthropic.types import Model
from dualtrack.models.prices import DATA_FILE
from genai_prices.data import providers
from genai_prices.types import ModelPrice, StartDateConstraint, TieredPrices

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from decimal import Decimal

    from genai_prices.types import ModelInfo, Provider

PACKAGE: Final = "genai-prices"
MAKERS: Final = {"anthropic": "anthropic", "aws": "anthropic", "voyageai": "voyageai"}
"""Who makes the models of each of the package's providers that dualtrack speaks to; of AWS's only Claude."""

DAY: Final = "YYYYMMDD"
_PROBES: Final = ("20250514", "20261127")
_KEYS: Final = {
    "input_mtok": "input",
    "output_mtok": "output",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "cache_write_hour",
}
_SEARCHES: Final = "web_searches_kcount"
_STEM: Final = re.compile(r"-20\d{2}$|@")


def snapshot(taken_on: str) -> dict[str, Any]:
    """The file's content."""
    (licence,) = (
        file
        for file in distribution(PACKAGE).files or ()
        if file.name == "LICENSE" and "licenses" in file.parts
    )
    return {
        "source": f"{PACKAGE} {version(PACKAGE)}, https://github.com/pydantic/genai-prices",
        "taken_on": taken_on,
        "licence": licence.read_text(encoding="utf-8").strip(),
        "models": [entry for provider in providers if provider.id in MAKERS for entry in _entries(provider)],
    }


def written(data: dict[str, Any]) -> str:
    """As text, a model a line."""
    head = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in data.items() if name != "models"]
    models = ",\n".join(f"  {json.dumps(model, separators=(',', ':'))}" for model in data["models"])
    return "{\n" + ",\n".join([*head, f' "models": [\n{models}\n ]']) + "\n}\n"


def _entries(provider: Provider) -> Iterator[dict[str, Any]]:
    names = _names(provider)
    for model in provider.models:
        if own := names.get(model.id):
            yield {
                "id": model.id,
                "maker": MAKERS[provider.id],
                "service": {"aws": "bedrock"}.get(provider.id, provider.id),
                "names": sorted(own),
                "prices": _periods(model),
                **({"batch": batch} if (batch := _batch(model)) else {}),
            }


# ── names ─────────────────────────────────────────────────────────────────────────────────────────


def _names(provider: Provider) -> dict[str, set[str]]:
    """Each model's names."""
    found: dict[str, set[str]] = {}
    if provider.id == "aws":
        for name, model_id in dict(_bedrock_names(provider)).items():
            found.setdefault(model_id, set()).add(name)
        return found
    for name in _candidates(provider):
        if model := provider.find_model(name):
            found.setdefault(model.id, set()).add(name)
            is_whole = re.search(r"-(20\d{6}|latest)$", name)
            if not is_whole and all(_takes(provider, model, f"{name}-{day}") for day in _PROBES):
                found[model.id].add(f"{name}-{DAY}")
    for own in found.values():  # a name with a day of its own, which the name with any day has already
        own -= {name for name in own if re.sub(r"-20\d{6}$", f"-{DAY}", name) in own - {name}}
    return found


def _takes(provider: Provider, model: ModelInfo, name: str) -> bool:
    found = provider.find_model(name)
    return found is not None and found.id == model.id


def _candidates(provider: Provider) -> set[str]:
    names = {model.id for model in provider.models}
    names |= {text for model in provider.models for kind, text in _leaves(model.match) if kind != "regex"}
    if provider.id == "anthropic":
        literal, _ = get_args(Model)
        names |= set(get_args(literal))
        aws = next(other for other in providers if other.id == "aws")
        bedrock = (re.search(r"claude-.*?-20\d{6}(?=-v\d|$)", model.id) for model in aws.models)
        names |= {match[0] for match in bedrock if match}
    return {name for name in names if not _STEM.search(name)}


def _bedrock_names(provider: Provider) -> Iterator[tuple[str, str]]:
    """Names with the ids of their models: with the prefixes of the rules, as a rule has them and as the model's id
    ends; and ``anthropic.`` with the name without a day, as `dualtrack.models.providers.bedrock` has it."""
    for model in provider.models:
        _, is_claude, tail = model.id.partition("anthropic.claude-")
        if not is_claude:
            continue
        stems = {text.partition("anthropic.") for _, text in _leaves(model.match) if "anthropic." in text}
        tails = {stem for _, _, stem in stems} | {f"claude-{tail}"}
        regional = {""} if model.id.startswith("regional.") else set[str]()
        for prefix in {prefix for prefix, _, _ in stems} | regional:
            for name in (f"{prefix}anthropic.{one}" for one in tails):
                if _takes(provider, model, name):
                    yield name, model.id
        plain = f"anthropic.claude-{re.sub(r'(-20[0-9]{6})?(-v[0-9](:[0-9])?)?$', '', tail)}"
        if model.id.startswith("regional.") and provider.find_model(plain) is None:
            yield plain, model.id


def _leaves(match: Any) -> Iterator[tuple[str, str]]:
    """The kinds and texts of a rule's clauses."""
    for clause in getattr(match, "or_", None) or (match,):
        ((kind, text),) = vars(clause).items()
        yield kind, text


# ── prices ────────────────────────────────────────────────────────────────────────────────────────


def _periods(model: ModelInfo) -> list[dict[str, Any]]:
    if isinstance(model.prices, ModelPrice):
        return [_price(model.prices)]
    return [{**_since(one.constraint), **_price(one.prices)} for one in model.prices]


def _batch(model: ModelInfo) -> list[dict[str, Any]]:
    variants = [one for one in model.price_variants or () if one.when == {"processing": "batch"}]
    return [{**_since(one.constraint), **_price(one.prices)} for one in variants]


def _since(constraint: object) -> dict[str, str]:
    if constraint is None:
        return {}
    if not isinstance(constraint, StartDateConstraint):
        raise TypeError(f"no such constraint is known: {constraint}")
    return {"since": constraint.start_date.isoformat()}


def _price(price: ModelPrice) -> dict[str, Any]:
    """Dollars for a million tokens and a thousand searches; ``long``: of a prompt of more than so many tokens."""
    given = {key: value for key, value in vars(price).items() if value is not None}
    if unknown := given.keys() - _KEYS.keys() - {_SEARCHES}:
        raise ValueError(f"no such price is known: {', '.join(unknown)}")
    base = {key: value.base if isinstance(value, TieredPrices) else value for key, value in given.items()}
    steps = sorted(
        {tier.start for value in given.values() if isinstance(value, TieredPrices) for tier in value.tiers}
    )
    entry: dict[str, Any] = _rates(base)
    if steps:
        entry["long"] = [{"above": step, **_rates(_at(given, step))} for step in steps]
    if _SEARCHES in base:
        entry["web_searches"] = float(base[_SEARCHES])
    return entry


def _at(given: dict[str, Any], step: int) -> dict[str, Decimal]:
    """The prices above a step."""
    tiered = {key: value for key, value in given.items() if isinstance(value, TieredPrices)}
    higher = {
        key: [tier.price for tier in value.tiers if tier.start <= step] for key, value in tiered.items()
    }
    return {**given, **{key: prices[-1] if prices else tiered[key].base for key, prices in higher.items()}}


def _rates(given: dict[str, Decimal]) -> dict[str, float]:
    """What has no price of its own costs as what it is part of: cached input as input, an hour as five minutes."""
    rates = {_KEYS[key]: float(value) for key, value in given.items() if key in _KEYS}
    rates.setdefault("output", 0.0)
    rates.setdefault("cache_read", rates["input"])
    rates.setdefault("cache_write", rates["input"])
    rates.setdefault("cache_write_hour", rates["cache_write"])
    return {name: rates[name] for name in _KEYS.values()}


def main(arguments: Sequence[str] = ()) -> None:
    """Write the file."""
    DATA_FILE.write_text(written(snapshot(datetime.now(UTC).date().isoformat())), encoding="utf-8")


if __name__ == "__main__":
    main()
