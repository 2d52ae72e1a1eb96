"""A project: the agents, tools and settings of a team, read from its folder and checked."""
