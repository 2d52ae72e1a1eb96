"""`dualtrack.tool`: what it makes of a function, what it refuses, and how a call of it runs."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date
from functools import partial, wraps
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pytest
from dualtrack import Media, Source, ToolContext, ToolResult, tool
from dualtrack.tool_declaration import Declaration, declared
from dualtrack.tool_signature import ToolDeclarationError
from dualtrack.tool_values import Injected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from elsewhere import Unknown  # type: ignore[import-not-found]

CONTEXT = ToolContext("ann", "cv_1", "ch_1", {"UNIT": "C"})


def of(function: Callable[..., Any]) -> Declaration:
    found = declared(function)
    assert found
    return found


@tool(price="github", effect="destroys", repeatable=True, approval="always", seconds=20)
def weather(city: str, days: Annotated[int, "1 to 7"] = 1) -> str:
    """Forecast for a city,
    in Celsius.

    - one line
      for each day
    """
    return f"{city}: {days}"


def test_a_function_is_a_tool_and_stays_as_it_is() -> None:
    assert weather("Rome") == "Rome: 1"
    declaration = of(weather)
    assert declaration.name == "weather"
    assert (
        declaration.signature.description == "Forecast for a city, in Celsius.\n\n- one line\n  for each day"
    )
    assert declaration.signature.input_schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "description": "1 to 7", "default": 1},
        },
        "required": ("city",),
        "additionalProperties": False,
    }
    options = (
        declaration.price,
        declaration.does,
        declaration.is_repeatable,
        declaration.approval,
        declaration.seconds,
    )
    assert options == ("github", "destroys", True, "always", 20)


def test_without_options_a_tool_may_change_the_world() -> None:
    @tool
    def bare() -> str:
        """Does."""
        return "done"

    declaration = of(bare)
    options = (
        declaration.price,
        declaration.does,
        declaration.is_repeatable,
        declaration.approval,
        declaration.seconds,
    )
    assert options == ("other", "changes", False, None, None)
    assert declaration.signature.input_schema["required"] == ()
    assert declared(print) is None


def test_a_keyword_of_python_can_be_an_argument() -> None:
    @tool
    def path(from_: str, *, to: str) -> str:
        """Finds a path."""
        return f"{from_} {to}"

    assert list(of(path).signature.input_schema["properties"]) == ["from", "to"]
    assert of(path).call({"from": "a", "to": "b"}).content == "a b"


def test_an_asynchronous_tool_is_awaited() -> None:
    @tool
    async def slowly(text: str) -> str:
        """Does."""
        await asyncio.sleep(0)
        return text

    assert of(slowly).call({"text": "x"}) == ToolResult("x")


def test_it_is_given_the_context_and_the_model_does_not_see_it() -> None:
    @tool
    def who(context: ToolContext, again: ToolContext | None = None, *, text: str) -> dict[str, Any]:
        """Does."""
        assert again is context
        return {
            "of": [context.user, context.conversation, context.chat, context.settings["UNIT"]],
            "text": text,
        }

    assert list(of(who).signature.input_schema["properties"]) == ["text"]
    assert of(who).call({"text": "x"}, [Injected(), CONTEXT]).content == (
        '{"of":["ann","cv_1","ch_1","C"],"text":"x"}'
    )


def test_it_is_given_what_its_own_function_has() -> None:
    @dataclass(frozen=True, slots=True)
    class Table(Injected):
        kind: ClassVar[Any] = "search"
        rows: int

    @tool
    def rows(table: Table) -> int:
        """Counts."""
        return table.rows

    assert of(rows).signature.provided == {"table": Table}
    assert of(rows).call({}, [CONTEXT, Table(3)]).content == "3"


def test_a_wrapped_function_is_a_tool_by_the_inner_signature() -> None:
    def louder(function: Callable[..., str]) -> Callable[..., str]:
        @wraps(function)
        def loud(**arguments: Any) -> str:
            return function(**arguments).upper()

        return loud

    @tool
    @louder
    def say(text: str) -> str:
        """Says."""
        return text

    assert of(say).call({"text": "x"}).content == "X"


@dataclass
class Day:
    on: date
    rain: bool = False


@pytest.mark.parametrize(
    ("returned", "wanted"),
    [
        ("as it is", "as it is"),
        ("", "(the tool returned nothing)"),
        (None, "(the tool returned nothing)"),
        (True, "true"),
        ({"a": [1, 2.5, None]}, '{"a":[1,2.5,null]}'),
        (("é",), '["é"]'),
        (Day(date(2026, 3, 1)), '{"on":"2026-03-01","rain":false}'),
        ([Day(date(2026, 3, 1))], '[{"on":"2026-03-01","rain":false}]'),
        ({"b"}, '["b"]'),
    ],
)
def test_what_it_returns_is_the_result(returned: Any, wanted: str) -> None:
    @tool
    def give() -> Any:
        """Gives."""
        return returned

    assert of(give).call({}) == ToolResult(wanted)


def test_a_result_may_have_sources_and_media() -> None:
    result = ToolResult("see", sources=(Source("a", "https://a.test/"),), media=(Media("image/png", "aGk="),))

    @tool
    def give() -> ToolResult:
        """Gives."""
        return result

    assert of(give).call({}) is result


@pytest.mark.parametrize("returned", [object(), float("nan"), {("a",): 1}, [print], {1, "a"}])
def test_a_result_that_is_no_json_is_an_error(returned: Any) -> None:
    @tool
    def give() -> Any:
        """Gives."""
        return returned

    with pytest.raises(TypeError, match=f"the tool returned a {type(returned).__name__} that is no JSON"):
        of(give).call({})


def test_a_value_that_holds_itself_is_an_error() -> None:
    endless: list[Any] = []
    endless.append(endless)

    @tool
    def give() -> Any:
        """Gives."""
        return endless

    with pytest.raises(TypeError, match="that is no JSON"):
        of(give).call({})


def test_arguments_that_nobody_has_checked_are_an_error_result() -> None:
    """They are checked before the call is paid; this is the second line."""
    failed = "Tool execution failed: bad arguments: $."
    assert of(weather).call({}).content == f"{failed}city: absent."
    assert of(weather).call({"city": 1}).content == f"{failed}city: text expected, not a int."
    assert of(weather).call({"city": "Rome", "days": True}).is_error


# ── what is refused ───────────────────────────────────────────────────────────────────────────────


def untyped(city) -> str:  # type: ignore[no-untyped-def, empty-body]
    """Does."""


def many(*cities: str) -> str:  # type: ignore[empty-body]
    """Does."""


def named(**cities: str) -> str:  # type: ignore[empty-body]
    """Does."""


def positional(city: str, /) -> str:  # type: ignore[empty-body]
    """Does."""


def undocumented(city: str) -> str:  # type: ignore[empty-body]
    pass


def only_for_checking(city: Unknown) -> str:  # type: ignore[empty-body]
    """Does."""


def yields(city: str) -> Iterator[str]:
    """Does."""
    yield city


def größe(city: str) -> str:  # type: ignore[empty-body]  # noqa: PLC2401
    """Does."""


def parameter(größe: str) -> str:  # type: ignore[empty-body]  # noqa: PLC2401
    """Does."""


def same(city: str, city_: str) -> str:  # type: ignore[empty-body]
    """Does."""


def not_shown(city: Any = object()) -> str:  # type: ignore[empty-body]  # noqa: B008
    """Does."""


def not_its_type(city: str = None) -> str:  # type: ignore[assignment, empty-body]  # noqa: RUF013
    """Does."""


def too_long(city: str) -> str:  # type: ignore[empty-body]
    ...


too_long.__doc__ = "x" * 4_001


def too_large(city: Annotated[str, "x" * 50_001]) -> str:  # type: ignore[empty-body]
    """Does."""


def long_name(city: str) -> str:  # type: ignore[empty-body]
    """Does."""


long_name.__name__ = "x" * 65


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (untyped, "the parameter 'city' has no type: write city: str."),
        (many, "the model cannot fill *cities: write a parameter for each argument."),
        (named, "the model cannot fill **cities: write a parameter for each argument."),
        (positional, "'city' is positional only, but arguments have names: leave out the /."),
        (
            undocumented,
            "it has no docstring: write one that tells the model what the tool does and when to use it.",
        ),
        (
            only_for_checking,
            "the parameter 'city': the type Unknown is not known here: import or define it above the tool, not only for type checking.",
        ),
        (yields, "it yields, but a call has one result: return it."),
        (größe, "the name is not allowed: write letters a to z, digits and _, at most 64."),
        (long_name, "the name is not allowed: write letters a to z, digits and _, at most 64."),
        (parameter, "the parameter 'größe' is not allowed: write letters a to z, digits and _, at most 64."),
        (same, "the parameters city and city_ are one argument: rename one."),
        (
            not_shown,
            "the default of 'city' cannot be shown in JSON: write `| None = None` and set it inside.",
        ),
        (
            not_its_type,
            "the default of 'city' is not of its type (text expected, not a NoneType): write another type or default.",
        ),
        (too_long, "the docstring has 4,001 characters: write at most 4,000."),
        (too_large, "its schema has more than 50,000 characters: write fewer or smaller parameters."),
    ],
)
def test_what_cannot_be_offered_is_refused_when_it_is_declared(function: Any, said: str) -> None:
    with pytest.raises(ToolDeclarationError) as caught:
        tool(function)
    line = function.__code__.co_firstlineno
    assert str(caught.value) == f"{__file__}:{line}: tool {function.__name__!r}: {said}"
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"price": 2}, "price is 2: write the name of a price class, such as price='other'."),
        ({"price": ""}, "price is ''"),
        (
            {"effect": "writes"},
            "effect is 'writes': write 'reads', 'changes' or 'destroys', or leave it out.",
        ),
        ({"repeatable": "yes"}, "repeatable is 'yes': write repeatable=True or leave it out."),
        ({"approval": "ask"}, "approval is 'ask': write 'never', 'always' or 'writes', or leave it out."),
        ({"seconds": 0}, "seconds is 0: write a number above 0, at most 900."),
        ({"seconds": 901}, "seconds is 901"),
        ({"seconds": True}, "seconds is True"),
        ({"seconds": "20"}, "seconds is '20'"),
    ],
)
def test_an_option_that_means_nothing_is_refused(options: Any, said: str) -> None:
    def fine() -> str:  # type: ignore[empty-body]
        """Does."""

    with pytest.raises(ToolDeclarationError) as caught:
        tool(**options)(fine)
    assert said in str(caught.value)


@pytest.mark.parametrize("what", [len, int, partial(print, "x"), ToolContext, "text"])
def test_only_a_function_is_a_tool(what: Any) -> None:
    with pytest.raises(ToolDeclarationError, match="it is no function: write @tool above def or async def"):
        tool(what)


def test_a_call_sees_its_context_variables() -> None:
    """Costs of a tool's own model calls are kept in one."""
    variable: ContextVar[str] = ContextVar("variable")

    @tool
    async def read() -> str:
        """Reads."""
        return variable.get()

    variable.set("seen")
    assert of(read).call({}).content == "seen"
