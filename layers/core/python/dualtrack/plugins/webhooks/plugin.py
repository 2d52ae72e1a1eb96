"""What the API and the terminal know of webhooks."""

from types import MappingProxyType
from typing import Final

from dualtrack.ids import IdForm
from dualtrack.plugin import Plugin

PLUGIN: Final = Plugin(
    ids=MappingProxyType(
        {
            "webhook_id": IdForm(
                "webhook",
                "wh_[0-9a-v]{26}",
                "wh_01jd8m3v5q0000000000000000",
                "The webhook",
                " `dualtrack webhooks list` shows them.",
            )
        }
    ),
)
