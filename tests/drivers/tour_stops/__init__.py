"""The stops of the tour, by what they are about; importing this declares all of them, those of plug-ins too."""

from tests.drivers.plugin_parts import parts
from tests.drivers.tour_stops import (  # noqa: F401 - they declare themselves
    account,
    administration,
    chats,
    conversations,
    functions,
)

parts("tour_stops")
