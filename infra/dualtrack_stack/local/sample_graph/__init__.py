"""A sample graph, written for dualtrack: the assets of a water works, their locations, systems and categories.

``python -m dualtrack_stack.local.sample_graph`` rewrites its two files, and a test compares. Biofilter 11 has 23
assets: 9 on its own, 8 in its valve gallery, 4 in its blower room and 2 in a cabinet there. Two locations are called
Pump Room.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
NODES: Final = FOLDER / "nodes.csv"
"""``node_id,label,name`` and the properties, empty where a node has none."""

EDGES: Final = FOLDER / "edges.csv"
"""``from,type,to`` and the properties."""
