"""The stops of the tour, by what they are about; importing this declares all of them."""

from tests.drivers.tour_stops import (  # noqa: F401 - they declare themselves
    account,
    administration,
    chats,
    completions,
    conversations,
    functions,
    responses,
    schedules,
)
