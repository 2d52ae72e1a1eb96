"""A chat's agent: profile, provider, model, thinking, in-house tools. A hash pins it when the query starts.

    first turn   today's agent ─► kept in the cache table under its hash ─► the chat's pin names the hash
    later        the pin's hash ─► the same agent, even after a deployment

So all turns, retries and summaries of a chat use the same agent (PROFILES 1). The tools of MCP servers are pinned
by the version of their catalogue. Only if the model was withdrawn while the chat waited for a decision does it go on
with the deployment's.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from dualtrack.codec import dump, load, stored
from dualtrack.errors import Gone
from dualtrack.memory.summaries import at_its_price
from dualtrack.models.provider import FIRST
from dualtrack.models.thinking import Thinking
from dualtrack.profiles import Profile, with_utility
from dualtrack.settings import DEFAULTS
from dualtrack.tool_values import ToolSpec
from dualtrack.tools.registry import IN_HOUSE, in_house_specs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.storage.agents import AgentStore
    from dualtrack.storage.chats import Chat


@stored(whole=True)
@dataclass(frozen=True)
class Agent:
    """The model that a chat calls, and how. ``tools``: its in-house tools; ``provider``: who serves the model."""

    profile: Profile
    model: str
    thinking: Thinking
    tools: tuple[ToolSpec, ...]
    provider: str = FIRST

    @cached_property
    def text(self) -> str:
        """The agent as JSON."""
        return dump(self)

    @cached_property
    def version(self) -> str:
        """The hash of `text`."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class AgentDeployment:
    """What the deployment sets for agents. ``model``: for profiles that name none; ``provider`` serves it;
    ``summary_model``: of summaries, empty for that of the turn. Profiles and tools by name."""

    model: str
    thinking: Thinking = field(default_factory=Thinking)
    provider: str = DEFAULTS.dualtrack_provider
    summary_model: str = ""
    profiles: Mapping[str, Profile] = field(default_factory=with_utility)
    tools: Mapping[str, ToolSpec] = field(default_factory=lambda: IN_HOUSE)


def agent_of(agents: AgentStore, chat: Chat, deployed: AgentDeployment) -> Agent:
    """The chat's agent: the pinned one, else today's.

    Pinned agents are kept in a cache. If the entry is missing, the chat continues with today's agent. Raises `Gone`
    if there is none, because the profile was removed.
    """
    pinned = chat.pin.agent if chat.pin else ""
    today = _today(chat, deployed)
    if pinned and (today is None or today.version != pinned):
        text = agents.load(pinned)
        if text is not None:
            return load(Agent, text)
    if today is None:
        raise Gone(chat.profile)
    return today


def on_deployed_model(agent: Agent, deployed: AgentDeployment) -> Agent | None:
    """The agent with the deployment's model in place of its own; None if it has that model."""
    if (agent.model, agent.provider) == (deployed.model, deployed.provider):
        return None
    return replace(agent, model=deployed.model, thinking=deployed.thinking, provider=deployed.provider)


def _today(chat: Chat, deployed: AgentDeployment) -> Agent | None:
    """The agent as deployed now, but with the recorded model and effort if the chat has a recorded turn."""
    profile = deployed.profiles.get(chat.profile)
    if profile is None:
        return None
    thinking = deployed.thinking
    chosen = replace(thinking, effort=chat.effort) if chat.model else thinking
    model = chat.model or profile.model or deployed.model
    priced = at_its_price(profile, model, deployed.summary_model)
    return Agent(priced, model, chosen, in_house_specs(profile, deployed.tools), deployed.provider)
