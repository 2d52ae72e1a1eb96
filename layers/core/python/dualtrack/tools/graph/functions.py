"""The functions and types that a model's query may name: those of the engine that compute from their arguments alone.

Left out: functions that read or change settings, sequences or the state of the session (``nextval``, ``setseed``,
``error``), and every table function.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_AGGREGATES: Final = "avg collect count max min percentilecont percentiledisc sum"
_GRAPH: Final = (
    "end_node id is_acyclic is_trail keys label labels length nodes properties relationships rels start_node "
    "type"
)
_LISTS: Final = (
    "array_append array_concat array_contains array_extract array_position array_slice list_any_value list_append "
    "list_concat list_contains list_distinct list_element list_extract list_filter list_has_all list_has_any list_max "
    "list_min list_position list_product list_reduce list_reverse list_sort list_sum list_to_string list_transform "
    "list_unique map map_extract map_keys map_values range size struct_extract"
)
_NUMBERS: Final = (
    "abs acos asin atan atan2 cbrt ceil ceiling cos cot degrees even floor greatest least ln log log10 log2 pi pow "
    "radians round sign sin sqrt tan"
)
_TEXT: Final = (
    "concat concat_ws contains ends_with initcap lcase left levenshtein lower lpad ltrim md5 prefix regexp_extract "
    "regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array repeat replace reverse "
    "right rpad rtrim sha256 split_part starts_with string_split substr substring suffix tolower toupper trim ucase "
    "upper"
)
_TIME: Final = (
    "century current_date current_timestamp date date_part date_trunc datepart datetrunc dayname epoch_ms interval "
    "last_day make_date monthname timestamp to_days to_hours to_minutes to_months to_seconds to_timestamp to_years"
)
_VALUES: Final = (
    "blob cast coalesce hash ifnull nullif octet_length string to_bool to_date to_double to_float to_int64 to_string "
    "typeof"
)

_OTHERWISE: Final = {"type": "label"}
"""The engine's names for functions of openCypher that it names differently."""

FUNCTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: _OTHERWISE.get(name, name)
        for name in " ".join((_AGGREGATES, _GRAPH, _LISTS, _NUMBERS, _TEXT, _TIME, _VALUES)).split()
    }
)
"""The engine's name of each function by its name in lower case."""

_TYPES: Final = "BOOL BOOLEAN DATE DOUBLE FLOAT INT16 INT32 INT64 INTERVAL STRING TIMESTAMP"
TYPES: Final = frozenset(_TYPES.split())
"""Types that ``CAST(… AS TYPE)`` may name."""
