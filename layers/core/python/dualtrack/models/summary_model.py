"""The model of summaries, digests and titles where a deployment names none. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.models.contract_prices import checked_prices
from dualtrack.models.prices import at_contract
from dualtrack.models.provider import PROVIDERS, provider_of

if TYPE_CHECKING:
    from dualtrack.models.prices import Rates
    from dualtrack.settings import Settings

SMALL: Final = "claude-haiku-5-5"
"""The cheapest model that is good enough for summaries."""

CHEAP: Final = 0.1
"""The part of the turn's price up to which calls for summaries cost less than notes, which the turn's model writes."""


def is_cheap_beside(own: Rates, turn: Rates) -> bool:
    """Whether a model at its ``own`` rates costs at most `CHEAP` of the turn's, in and out."""
    return own.input <= turn.input * CHEAP and own.output <= turn.output * CHEAP


def summary_model(model: str, settings: Settings) -> str:
    """The value of DUALTRACK_SUMMARY_MODEL: what is set, else the turn's model, or `SMALL` where that is cheap beside
    it. Not with a service of AWS, where an account has to open each model first: summaries that are refused would be
    missed by nobody until somebody looks."""
    turn, provider = settings.dualtrack_model, settings.dualtrack_provider
    if model or provider not in PROVIDERS or provider_of(provider).signing:
        return model or turn
    try:
        prices = checked_prices(settings.dualtrack_model_prices, settings)
    except ValueError:  # that setting's own check says what is wrong
        return turn
    small, own = (at_contract(name, prices, provider) for name in (SMALL, turn))
    if small is None or own is None:
        return turn
    is_cheap = is_cheap_beside(small.price_today().rates, own.price_today().rates)
    return SMALL if is_cheap else turn
