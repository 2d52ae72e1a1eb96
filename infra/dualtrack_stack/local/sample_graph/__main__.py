"""``python -m dualtrack_stack.local.sample_graph``: writes the sample's files. Nothing in it is random."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dualtrack_stack.local.sample_graph import EDGES, NODES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MAKERS: Final = ("Hallmark Pumps", "Nordvent", "Ostrava Valves", "Keller & Roth", "Lumen Controls")

CATEGORIES: Final = {
    "Process Areas": ("Biological Stages", "Mechanical Stages", "Chemical Stages"),
    "Buildings": ("Technical Rooms", "Offices"),
    "Process Systems": ("Water Treatment", "Air Supply", "Dosing Systems"),
    "Support Systems": ("Electrical Supply", "Monitoring"),
    "Rotating Equipment": ("Pumps", "Blowers", "Mixers"),
    "Static Equipment": ("Valves", "Filters", "Tanks"),
    "Instruments": ("Flow Meters", "Level Sensors", "Oxygen Sensors"),
    "Electrical Equipment": ("Control Panels", "Motors"),
}
"""The tree of categories, two levels below its root."""

SYSTEMS: Final = {
    "Raw Water Intake": ("", "Water Treatment"),
    "Biological Filtration": ("", "Water Treatment"),
    "Backwash Water": ("Biological Filtration", "Water Treatment"),
    "Process Air": ("Biological Filtration", "Air Supply"),
    "Chemical Dosing": ("", "Dosing Systems"),
    "Sludge Handling": ("", "Water Treatment"),
    "Low Voltage Distribution": ("", "Electrical Supply"),
    "Process Monitoring": ("", "Monitoring"),
}
"""Each with its system and its category."""

CONTEXTS: Final = ("Operation", "Maintenance", "Energy Audit", "Safety Inspection", "Renewal 2027")

KINDS: Final = {
    "Feed Pump": ("Pumps", "Biological Filtration", 15.0),
    "Backwash Pump": ("Pumps", "Backwash Water", 22.5),
    "Air Blower": ("Blowers", "Process Air", 37.0),
    "Drive Motor": ("Motors", "Low Voltage Distribution", 18.5),
    "Inlet Valve": ("Valves", "Biological Filtration", 0.5),
    "Outlet Valve": ("Valves", "Biological Filtration", 0.5),
    "Drain Valve": ("Valves", "Backwash Water", 0.4),
    "Filter Bed": ("Filters", "Biological Filtration", None),
    "Flow Meter": ("Flow Meters", "Process Monitoring", None),
    "Level Sensor": ("Level Sensors", "Process Monitoring", None),
    "Oxygen Sensor": ("Oxygen Sensors", "Process Monitoring", None),
    "Control Panel": ("Control Panels", "Low Voltage Distribution", 2.0),
    "Intake Pump": ("Pumps", "Raw Water Intake", 75.0),
    "Sludge Pump": ("Pumps", "Sludge Handling", 11.0),
    "Dosing Pump": ("Pumps", "Chemical Dosing", 0.8),
    "Storage Tank": ("Tanks", "Chemical Dosing", None),
    "Tank Mixer": ("Mixers", "Chemical Dosing", 3.0),
    "Sludge Mixer": ("Mixers", "Sludge Handling", 4.0),
}
"""Category, system and power in kW of each kind of asset."""

FILTER: Final = ("Feed Pump", "Inlet Valve", "Outlet Valve", "Drain Valve", "Filter Bed", "Flow Meter")
"""The assets of every biofilter."""

GALLERY: Final = ("Inlet Valve", "Outlet Valve", "Drain Valve", "Backwash Pump", "Flow Meter")
BLOWERS: Final = ("Air Blower", "Drive Motor", "Oxygen Sensor")
INTAKE: Final = ("Intake Pump", "Intake Pump", "Drive Motor", "Drive Motor", "Flow Meter", "Level Sensor")
SLUDGE: Final = ("Sludge Pump", "Sludge Pump", "Sludge Mixer", "Drive Motor", "Level Sensor")
CHEMICALS: Final = (
    "Storage Tank",
    "Storage Tank",
    "Tank Mixer",
    "Dosing Pump",
    "Dosing Pump",
    "Level Sensor",
)

OF_ELEVEN: Final = {
    "Biofilter 11": (*FILTER, "Level Sensor", "Oxygen Sensor", "Control Panel"),
    "Biofilter 11 Valve Gallery": (*GALLERY, "Inlet Valve", "Outlet Valve", "Level Sensor"),
    "Biofilter 11 Blower Room": (*BLOWERS, "Air Blower"),
    "Biofilter 11 Control Cabinet": ("Control Panel", "Flow Meter"),
}
"""9 + 8 + 4 + 2 = 23 assets."""


@dataclass
class Works:
    """The nodes and relationships so far."""

    nodes: list[dict[str, object]] = field(default_factory=list)
    edges: list[dict[str, object]] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)

    def node(self, label: str, name: str, **properties: object) -> str:
        """A new node's id: the label's first three letters and a number."""
        self.numbers[label] = self.numbers.get(label, 0) + 1
        node_id = f"{label[:3].lower()}-{self.numbers[label]:04}"
        self.nodes.append({"node_id": node_id, "label": label, "name": name, **properties})
        self.ids[f"{label} {name}"] = node_id
        return node_id

    def edge(self, start: str, kind: str, end: str, **properties: object) -> None:
        """A relationship between two ids."""
        self.edges.append({"from": start, "type": kind, "to": end, **properties})

    def location(self, name: str, within: str, category: str, floor: int) -> str:
        """A location within another, of a category."""
        location = self.node("Location", name, floor=floor)
        if within:
            self.edge(location, "LOCATED_IN", within)
        self.edge(location, "IN_CATEGORY", self.ids[f"Category {category}"])
        return location

    def fill(self, location: str, kinds: Iterable[str]) -> None:
        """Assets of these kinds in a location, in their systems, categories and contexts."""
        for kind in kinds:
            number = self.numbers[kind] = self.numbers.get(kind, 0) + 1
            category, system, power = KINDS[kind]
            year = 1998 + number * 7 % 27
            asset = self.node(
                "Asset",
                f"{kind} {number}",
                manufacturer=MAKERS[(number + len(kind)) % len(MAKERS)],
                installed=year,
                power_kw="" if power is None else power,
                in_service="false" if number % 11 == 0 else "true",
            )
            self.edge(asset, "LOCATED_IN", location, since=year)
            self.edge(asset, "PART_OF_SYSTEM", self.ids[f"System {system}"])
            self.edge(asset, "IN_CATEGORY", self.ids[f"Category {category}"])
            self.edge(asset, "IN_CONTEXT", self.ids[f"Context {CONTEXTS[number % 2]}"])
            if year < 2005:
                self.edge(asset, "IN_CONTEXT", self.ids["Context Renewal 2027"])


def water_works() -> Works:
    """The whole graph."""
    works = Works()
    _terms(works)
    site = works.location("Northwater Works", "", "Buildings", 0)
    for hall, first in (("Biofilter Hall A", 1), ("Biofilter Hall B", 9), ("Biofilter Hall C", 17)):
        building = works.location(hall, site, "Process Areas", 0)
        works.fill(building, ("Control Panel", "Level Sensor"))
        for number in range(first, first + 8):
            _biofilter(works, building, f"Biofilter {number}")
    _building(works, site, "Intake Building", "Mechanical Stages", INTAKE)
    _building(works, site, "Sludge Building", "Mechanical Stages", SLUDGE)
    store = works.location("Chemical Store", site, "Chemical Stages", 0)
    for bay in range(1, 7):
        works.fill(works.location(f"Dosing Bay {bay}", store, "Chemical Stages", 0), CHEMICALS)
    works.fill(works.location("Control Room", site, "Offices", 2), ("Control Panel",) * 6)
    works.location("Archive", site, "Offices", 2)
    return works


def _terms(works: Works) -> None:
    root = works.node("Category", "All Categories")
    for name, below in CATEGORIES.items():
        branch = works.node("Category", name)
        works.edge(branch, "SUBCATEGORY_OF", root)
        for leaf in below:
            works.edge(works.node("Category", leaf), "SUBCATEGORY_OF", branch)
    for name, (whole, category) in SYSTEMS.items():
        system = works.node("System", name)
        works.edge(system, "IN_CATEGORY", works.ids[f"Category {category}"])
        if whole:
            works.edge(system, "PART_OF_SYSTEM", works.ids[f"System {whole}"])
    for name in CONTEXTS:
        works.node("Context", name)


def _biofilter(works: Works, building: str, name: str) -> None:
    location = works.location(name, building, "Biological Stages", 0)
    gallery, blowers = f"{name} Valve Gallery", f"{name} Blower Room"
    works.fill(location, OF_ELEVEN.get(name, FILTER))
    works.fill(works.location(gallery, location, "Technical Rooms", -1), OF_ELEVEN.get(gallery, GALLERY))
    room = works.location(blowers, location, "Technical Rooms", 1)
    works.fill(room, OF_ELEVEN.get(blowers, BLOWERS))
    if name == "Biofilter 11":
        cabinet = works.location("Biofilter 11 Control Cabinet", room, "Technical Rooms", 1)
        works.fill(cabinet, OF_ELEVEN["Biofilter 11 Control Cabinet"])


def _building(works: Works, site: str, name: str, category: str, kinds: tuple[str, ...]) -> None:
    """With a pump room: every building has one of that name."""
    building = works.location(name, site, category, 0)
    works.fill(building, ("Control Panel", "Level Sensor"))
    works.fill(works.location("Pump Room", building, "Technical Rooms", -1), kinds * 2)
    works.fill(works.location(f"{name} Yard", building, category, 0), kinds)


def write(path: Path, rows: list[dict[str, object]]) -> None:
    """As CSV: the columns in the order in which they first occur."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Write both files."""
    works = water_works()
    write(NODES, works.nodes)
    write(EDGES, works.edges)
    print(f"{len(works.nodes)} nodes, {len(works.edges)} relationships")


if __name__ == "__main__":
    main()
