"""What a function says of itself as a tool: its description, and the JSON Schema of its parameters. Pure.

What cannot be offered is refused in one sentence with file and line, and with what to write (`ToolDeclarationError`).
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from types import NoneType, SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Any, Final, Union, get_args, get_origin, get_type_hints

from dualtrack.codec import Mismatch, reader
from dualtrack.frozen import dumps, freeze, loads, thaw
from dualtrack.tool_rules import MAX_DESCRIPTION, MAX_NAME, MAX_SCHEMA, NAME, PROPERTY
from dualtrack.tool_types import NoSchemaError, json_of, schema_of
from dualtrack.tool_values import Injected

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FunctionType

    from dualtrack.codec import FieldReader

_WRAPPED: Final = re.compile(r"(?<!\n)\n(?=[^\s*\-])")
"""A line break within a paragraph."""


class ToolDeclarationError(TypeError):
    """A tool cannot be offered as it is declared: ``tools/weather.py:12: tool 'weather': …: write …``."""

    def __init__(self, function: Any, problem: str) -> None:
        code = getattr(inspect.unwrap(function) if callable(function) else None, "__code__", None)
        where = f"{code.co_filename}:{code.co_firstlineno}: " if code else ""
        super().__init__(f"{where}tool {getattr(function, '__name__', function)!r}: {problem}.")


@dataclass(frozen=True, slots=True)
class ToolParameter:
    """An argument of a tool: its name in the schema, that of its Python parameter, how it is read."""

    name: str
    parameter: str
    read: FieldReader
    is_required: bool

    def value_of(self, data: Any) -> Any:
        """The value for the function. Raises `Mismatch`."""
        try:
            return self.read(data)
        except Mismatch as error:
            raise error.within(f"$.{self.name}") from None


@dataclass(frozen=True, slots=True)
class Signature:
    """``provided``: the parameters that the tool's Lambda function fills, with their types."""

    description: str
    input_schema: Mapping[str, Any]
    parameters: tuple[ToolParameter, ...]
    provided: Mapping[str, type[Injected]]


def signature_of(function: FunctionType, names: Mapping[str, Any]) -> Signature:
    """``names``: what its annotations may name beside the module's. Raises `ToolDeclarationError`."""
    _check_name(function)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolDeclarationError(function, "it yields, but a call has one result: return it")
    properties: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    parameters: list[ToolParameter] = []
    provided: dict[str, type[Injected]] = {}
    for parameter in _parameters(function):
        hint = _hint(function, parameter, names, with_notes=True)
        bare = _hint(function, parameter, names, with_notes=False)
        if kind := _provided(bare):
            provided[parameter.name] = kind
            continue
        name = _name_of(function, parameter, properties)
        schema = _schema(function, parameter, hint, definitions)
        read = thaw if bare is Any else reader(bare)
        is_required = parameter.default is parameter.empty
        properties[name] = schema | ({} if is_required else _default(function, parameter, read))
        parameters.append(ToolParameter(name, parameter.name, read, is_required))
    required = [parameter.name for parameter in parameters if parameter.is_required]
    schema = _bounded(function, properties, required, definitions)
    return Signature(_description(function), freeze(schema), tuple(parameters), provided)


def _check_name(function: FunctionType) -> None:
    name = function.__name__
    if not re.fullmatch(NAME, name) or len(name) > MAX_NAME:
        raise ToolDeclarationError(
            function, f"the name is not allowed: write letters a to z, digits and _, at most {MAX_NAME}"
        )


def _description(function: FunctionType) -> str:
    """The docstring, each paragraph a line."""
    text = _WRAPPED.sub(" ", inspect.cleandoc(function.__doc__ or "").strip())
    if not text:
        raise ToolDeclarationError(
            function,
            "it has no docstring: write one that tells the model what the tool does and when to use it",
        )
    if len(text) > MAX_DESCRIPTION:
        raise ToolDeclarationError(
            function, f"the docstring has {len(text):,} characters: write at most {MAX_DESCRIPTION:,}"
        )
    return text


def _parameters(function: FunctionType) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except NameError as error:  # annotations are evaluated late in Python 3.14
        raise ToolDeclarationError(function, _unknown(str(error.name))) from None
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    for parameter in parameters:
        if parameter.kind in stars:
            name = stars[parameter.kind] + parameter.name
            raise ToolDeclarationError(
                function, f"the model cannot fill {name}: write a parameter for each argument"
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise ToolDeclarationError(
                function, f"{parameter.name!r} is positional only, but arguments have names: leave out the /"
            )
        if parameter.annotation is parameter.empty:
            raise ToolDeclarationError(
                function, f"the parameter {parameter.name!r} has no type: write {parameter.name}: str"
            )
    return parameters


def _hint(
    function: FunctionType, parameter: inspect.Parameter, names: Mapping[str, Any], *, with_notes: bool
) -> Any:
    """The type of a parameter, with or without what stands in `Annotated`."""
    annotated: Any = SimpleNamespace(__annotations__={"it": parameter.annotation})
    scope = inspect.unwrap(function).__globals__
    try:
        return get_type_hints(annotated, scope, dict(names), include_extras=with_notes)["it"]
    except NameError as error:
        problem = _unknown(str(error.name))
    except Exception as error:  # noqa: BLE001 - anybody's annotation: it is evaluated
        problem = f"the type {parameter.annotation!r} cannot be read ({error}): write one such as str"
    raise ToolDeclarationError(function, f"the parameter {parameter.name!r}: {problem}")


def _unknown(name: str) -> str:
    return (
        f"the type {name} is not known here: import or define it above the tool, not only for type checking"
    )


def _provided(bare: Any) -> type[Injected] | None:
    """The type, if it is one that the tool's function fills; also behind ``| None``."""
    options = get_args(bare) if get_origin(bare) in (Union, UnionType) else (bare,)
    kinds = [option for option in options if option is not NoneType]
    only = kinds[0] if len(kinds) == 1 else None
    return only if isinstance(only, type) and issubclass(only, Injected) else None


def _name_of(function: FunctionType, parameter: inspect.Parameter, others: Mapping[str, Any]) -> str:
    """The argument's name: ``from`` for the parameter ``from_``, as ``from`` is a keyword."""
    name = parameter.name.removesuffix("_")
    if name in others:
        raise ToolDeclarationError(
            function, f"the parameters {name} and {name}_ are one argument: rename one"
        )
    if not re.fullmatch(PROPERTY, name):
        raise ToolDeclarationError(
            function, f"the parameter {name!r} is not allowed: write letters a to z, digits and _, at most 64"
        )
    return name


def _schema(
    function: FunctionType, parameter: inspect.Parameter, hint: Any, definitions: dict[str, Any]
) -> dict[str, Any]:
    try:
        return schema_of(hint, definitions)
    except NoSchemaError as error:
        raise ToolDeclarationError(
            function, f"the type of the parameter {parameter.name!r}: {error}"
        ) from None


def _default(function: FunctionType, parameter: inspect.Parameter, read: FieldReader) -> dict[str, Any]:
    """``{"default": …}``; nothing for None, which only says that it may be left out."""
    try:
        shown = loads(json_of(parameter.default))
        read(thaw(shown))
    except Mismatch as error:
        raise ToolDeclarationError(
            function,
            f"the default of {parameter.name!r} is not of its type ({error.reason}): write another type or default",
        ) from None
    except (TypeError, ValueError, RecursionError):
        raise ToolDeclarationError(
            function,
            f"the default of {parameter.name!r} cannot be shown in JSON: write `| None = None` and set it inside",
        ) from None
    return {} if shown is None else {"default": shown}


def _bounded(
    function: FunctionType, properties: dict[str, Any], required: list[str], definitions: dict[str, Any]
) -> dict[str, Any]:
    """The whole schema."""
    schema = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
        **({"$defs": definitions} if definitions else {}),
    }
    if len(dumps(schema)) > MAX_SCHEMA:
        raise ToolDeclarationError(
            function, f"its schema has more than {MAX_SCHEMA:,} characters: write fewer or smaller parameters"
        )
    return schema
