"""`tool`: a typed function as a tool. Name, description and JSON Schema are the function's own; docs/tools.md.

It needs the standard library alone, so that a project's tools load quickly.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, overload

from dualtrack.codec import Mismatch
from dualtrack.frozen import thaw
from dualtrack.tool_signature import Signature, ToolDeclarationError, signature_of
from dualtrack.tool_types import json_of
from dualtrack.tool_values import NOTHING, Injected, Switch, ToolResult, failed
from dualtrack.vocabulary import ApprovalRule, Effect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

F = TypeVar("F", bound=Callable[..., Any])

MAX_SECONDS: Final = 900
"""What a Lambda function may take at most."""

_ATTRIBUTE: Final = "__dualtrack_tool__"


@dataclass(frozen=True, slots=True)
class Declaration:
    """A function that is a tool, and what `tool` was told of it; None for what it was not."""

    function: Callable[..., Any]
    signature: Signature
    price: str
    effect: Effect | None
    repeatable: bool | None
    approval: ApprovalRule | None
    seconds: float | None
    switches: tuple[Switch, ...]

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__

    @property
    def does(self) -> Effect:
        """What it does to the world."""
        return self.effect or "changes"

    @property
    def is_repeatable(self) -> bool:
        """Whether running it twice is harmless: reading is, unless it says otherwise."""
        return self.does == "reads" if self.repeatable is None else self.repeatable

    @property
    def note(self) -> str:
        """What its author may have meant otherwise; or empty."""
        if self.effect or not self.repeatable or self.approval in ("never", "always"):
            return ""
        return (
            "repeatable=True alone no longer spares an approval: write effect='reads' if it only reads, or "
            "effect='changes' if it does not"
        )

    def call(self, arguments: Mapping[str, Any], provided: Iterable[Injected] = ()) -> ToolResult:
        """Run it with JSON arguments and what it may be provided with. Raises what the function raises."""
        try:
            values = dict(self._read(_whole(thaw(arguments))))
        except Mismatch as error:
            return failed(f"bad arguments: {error}.")
        given = tuple(provided)
        for parameter, kind in self.signature.provided.items():
            values[parameter] = next(value for value in given if isinstance(value, kind))
        returned = self.function(**values)
        return result_of(asyncio.run(_awaited(returned)) if inspect.isawaitable(returned) else returned)

    def _read(self, arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for parameter in self.signature.parameters:
            if parameter.name in arguments:
                yield parameter.parameter, parameter.value_of(arguments[parameter.name])
            elif parameter.is_required:
                raise Mismatch("absent", f"$.{parameter.name}")


async def _awaited(returned: Any) -> Any:
    return await returned


def _whole(value: Any) -> Any:
    """JSON with 2.0 as 2: the same number there."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return {key: _whole(item) for key, item in value.items()} if isinstance(value, dict) else value


def result_of(returned: Any) -> ToolResult:
    """What a tool returned, as a result: text as it is, all else as JSON. Raises TypeError for what has none."""
    if isinstance(returned, ToolResult):
        return returned
    if returned is None or isinstance(returned, str):
        return ToolResult(returned or NOTHING)
    try:
        return ToolResult(json_of(returned))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"the tool returned a {type(returned).__name__} that is no JSON ({error})") from error


def declared(value: Any) -> Declaration | None:
    """The declaration of a function that `tool` has marked; else None."""
    found = getattr(value, _ATTRIBUTE, None)
    return found if isinstance(found, Declaration) else None


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    price: str = "other",
    effect: Effect | None = None,
    repeatable: bool | None = None,
    approval: ApprovalRule | None = None,
    seconds: float | None = None,
    switches: tuple[Switch, ...] = (),
) -> Callable[[F], F]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    price: str = "other",
    effect: Effect | None = None,
    repeatable: bool | None = None,
    approval: ApprovalRule | None = None,
    seconds: float | None = None,
    switches: tuple[Switch, ...] = (),
) -> Any:
    """Offer a function to the model. The function itself stays as it is.

    ``price``: the price class of a call. ``effect``: what it does to the world; by default it ``changes`` something.
    ``repeatable``: running it twice is harmless, by default if it only ``reads``; else a call that has begun is never
    run again. ``approval``: whether somebody must approve a call (``writes``: unless it only reads); None leaves it to
    the profile. ``seconds``: after them a call has failed; None for as long as its
    Lambda function may take. ``switches``: the fields of the profile that it is told of where they are off, among the
    options of its call.

    Raises `ToolDeclarationError`.
    """
    names = sys._getframe(1).f_locals  # types that are defined beside the tool, in a function

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        if not isinstance(function, FunctionType):
            raise ToolDeclarationError(function, "it is no function: write @tool above def or async def")
        if problem := _wrong_option(price, effect, repeatable, approval, seconds):
            raise ToolDeclarationError(function, problem)
        signature = signature_of(function, names)
        told = Declaration(function, signature, price, effect, repeatable, approval, seconds, switches)
        setattr(function, _ATTRIBUTE, told)
        return function

    return declare if function is None else declare(function)


def _wrong_option(price: Any, effect: Any, repeatable: Any, approval: Any, seconds: Any) -> str:
    """What is wrong with what the decorator was told; or empty."""
    if not isinstance(price, str) or not price:
        return f"price is {price!r}: write the name of a price class, such as price='other'"
    if effect is not None and effect not in get_args(Effect):
        return f"effect is {effect!r}: write 'reads', 'changes' or 'destroys', or leave it out"
    if repeatable is not None and not isinstance(repeatable, bool):
        return f"repeatable is {repeatable!r}: write repeatable=True or leave it out"
    if approval is not None and approval not in get_args(ApprovalRule):
        return f"approval is {approval!r}: write 'never', 'always' or 'writes', or leave it out"
    if seconds is not None and not (type(seconds) in (int, float) and 0 < seconds <= MAX_SECONDS):
        return f"seconds is {seconds!r}: write a number above 0, at most {MAX_SECONDS}"
    return ""
