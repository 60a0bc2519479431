# SPDX-License-Identifier: Apache-2.0
"""A warning about a function that is compiled again and again for arrays of the same types.

A compilation pays if it serves a few calls: sizes that stay for an epoch, a sweep over rates, the
modes of a model are fine. So the warning comes when one place of the arguments has changed again
and the last compilations for its values were hardly used.
"""

import functools
import inspect
import types
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from pydag._core import CallKey
from pydag.jaxinterop.messages.at_call import warn_at_call
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.static.leaves import Static, is_number
from pydag.structure.text import short_repr
from pydag.typing import Leaf

from .compared_calls import (
    ARGUMENT,
    ATTRIBUTE,
    FIELD,
    KEYS,
    ORDER,
    SHARING,
    SIZE,
    ComparedCall,
    Difference,
    Keys,
    Size,
    differences,
)
from .difference import why

UNUSED = 3
"""So many compilations for values of one place, each of them used for fewer calls, are too many."""

_REMEMBERED = 8  # compilations: there may be others in between

NUMBER, TEXT, FUNCTION, OBJECT = "number", "text", "function", "object"
STRUCTURE = "structure"


class _Compiled(NamedTuple):
    call: ComparedCall
    key: CallKey  # counts its calls


class Changes:
    """Notices that a function is compiled again and again for calls that differ at one place.

    Asked when a call needs a new key, so a call that was compiled before costs nothing here.

    Args:
        source: Of the function.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._compiled: list[_Compiled] = []  # the latest comes last
        self._has_warned = False

    def forget(self) -> None:
        """Forgets all earlier calls."""
        self._compiled.clear()

    def add(self, key: CallKey, traced: Sequence[Leaf]) -> None:
        """Notes a call that needs a compilation; warns if one place in it changed each time.

        Args:
            key: The `Key` of the call.
            traced: The leaves that JAX traces.
        """
        if self._has_warned:
            return
        call = ComparedCall(key.value.untraced, traced)
        if any(call.is_for_the_same(before.call) for before in self._compiled):
            return
        if len(self._compiled) >= UNUSED:
            for found in self._by_place(call):
                if self._tell(found):
                    self._has_warned = True
                    self.forget()
                    return
        self._compiled = [*self._compiled[1 - _REMEMBERED :], _Compiled(call, key)]

    def _by_place(self, call: ComparedCall) -> Iterator[list[Difference]]:
        """How the last calls differ from this one, by place; those that were used often end a list.

        The latest comes last.
        """
        found: dict[tuple[str, str], list[Difference]] = {}
        for before in self._compiled:
            for difference in differences(before.call, call) or ():
                place = found.setdefault((difference.where, difference.place), [])
                if before.key.num_calls < UNUSED:
                    place.append(difference)
                else:
                    place.clear()
        return iter(found.values())

    def _tell(self, found: Sequence[Difference]) -> bool:
        """Warns of the changes at one place if they are many; returns whether it warned."""
        if not found:
            return False
        last = found[-1]
        kind = kind_of(last, last.new)
        if kind is None:
            return False
        alike = takewhile(lambda d: kind_of(d, d.old) == kind, reversed(found))
        values = different([*[d.old for d in alike][::-1], last.new])
        if len(values) <= UNUSED:
            return False
        warn_at_call(
            f"{self._source.text} was compiled {len(values)} times because "
            f"{_said(last, kind, values)}\n  {_advice(last, kind)}"
        )
        return True


def kind_of(difference: Difference, value: Any) -> str | None:
    """What kind of value stands at a place; None where another one is no mistake.

    That is a kind with few values, such as flags, and a number or text that the user named static:
    a function is compiled for each, as was asked.
    """
    if type(value) in (Size, Keys) or difference.where in (SHARING, ORDER):
        return STRUCTURE
    if value is None or isinstance(value, bool | np.bool_ | type):
        return None
    if is_number(value) or isinstance(value, str | bytes):
        if difference.where == ARGUMENT:
            return None
        return NUMBER if is_number(value) else TEXT
    return OBJECT if origin(value) is None else FUNCTION


def origin(value: Any) -> Any:
    """The code of a function, or of what a partial calls; None for what is no function."""
    while isinstance(value, functools.partial | types.MethodType):
        value = value.func if isinstance(value, functools.partial) else value.__func__
    if not callable(value) or isinstance(value, type):
        return None
    try:
        code = getattr(inspect.unwrap(value), "__code__", None)
    except Exception:  # reading an attribute may run code of the class
        return None
    if isinstance(code, types.CodeType):
        return code
    return value if isinstance(value, types.BuiltinFunctionType) else None


def different(values: Sequence[Any]) -> list[Any]:
    """The values without those that are equal to an earlier one."""
    found: dict[Static, Any] = {}
    for value in values:
        found.setdefault(Static(value), value)
    return list(found.values())


def _said(last: Difference, kind: str, values: Sequence[Any]) -> str:
    if last.where == SHARING:
        text = why(last.old, last.new).replace("\n", "\n  ")
        return f"its arguments were shared in another way each time:\n  {text}"
    if last.where == ORDER:
        text = why(last.old, last.new).replace("\n", "\n  ")
        return f"a dict was filled in another order each time:\n  {text}"
    before, now = map(short_repr if kind != STRUCTURE else repr, values[-2:])
    if kind == STRUCTURE:
        what = "had other keys" if last.where == KEYS else "was of another length"
        return f"a part of its arguments {what} each time: {last.place} was {before}, and is {now}"
    name = kind if kind in (NUMBER, TEXT, FUNCTION) else "object"
    what = {
        FIELD: f"{name} in a static field",
        ATTRIBUTE: f"{name} in a constant object",
        ARGUMENT: "static argument",
    }.get(last.where, f"static {name}")
    article = "an" if what.startswith("o") else "a"
    return f"{article} {what} was another one each time: {last.place} was {before}, and is {now}"


def _advice(last: Difference, kind: str) -> str:
    if kind == FUNCTION:
        return _FUNCTION_ADVICE.format(_made_at(last.new))
    if last.where in _ADVICE_BY_PLACE:
        return _ADVICE_BY_PLACE[last.where]
    if kind == NUMBER:
        return _NUMBER_FIELD_ADVICE if last.where == FIELD else _NUMBER_ADVICE
    return _TEXT_ADVICE if kind == TEXT else _OBJECT_ADVICE


def _made_at(function: Any) -> str:
    code = origin(function)
    if not isinstance(code, types.CodeType):
        return ""
    return f" This one is made at {code.co_filename}:{code.co_firstlineno}."


_NUMBER_ADVICE = """\
Numbers that a module holds are configuration, and a function is compiled for them. What changes \
from call to call is data: make it an array, such as jnp.asarray(0.5), or hold it in a record \
(pydag.register_fields)."""

_NUMBER_FIELD_ADVICE = """\
Static fields are configuration, and a function is compiled for them. What changes from call to \
call is data: let it be a field that isn't static, and an array, such as jnp.asarray(0.5)."""

_TEXT_ADVICE = """\
Text is configuration, and a function is compiled for it. Give each call the same text, and keep \
what changes, such as a name with the step in it, out of the arguments."""

_FUNCTION_ADVICE = """\
A function is known by identity: a lambda, a closure or a partial that is made anew for each call \
is another one.{} Make it once, and pass what changes as an argument."""

_OBJECT_ADVICE = """\
An object of a class that isn't registered is a constant, known by identity unless its class has \
an __eq__ and a __hash__. Make it once, or leave it out; if it is data, register its class \
(pydag.register_fields)."""

_ADVICE_BY_PLACE = {
    ATTRIBUTE: """\
An object of a class that isn't registered is a constant, and a function is compiled for what it \
holds. What changes from call to call is data: pass it as an array, or register the class \
(pydag.register_fields).""",
    ARGUMENT: """\
A function is compiled for each value of a static argument. What changes from call to call is \
data: leave it out of static_argnums and static_argnames, and pass an array.""",
    SIZE: """\
A function is compiled for each length. Keep what grows, such as a log, out of the arguments; or \
let it be one array of a fixed size.""",
    KEYS: """\
A function is compiled for each set of keys. Give each call the same keys, and keep what changes \
out of the arguments.""",
    SHARING: """\
What is one object is part of the structure. Share alike in each call: tie (pydag.tie, \
pydag.retie) or copy (pydag.untie) before it.""",
    ORDER: """\
The order of a dict is part of the structure, for a function can see it. Fill the dict in the same \
order for each call.""",
}
