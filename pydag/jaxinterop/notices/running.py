# SPDX-License-Identifier: Apache-2.0
"""The calls that are running, whose arguments show that a tie or a new model was lost.

A plain `jax.lax.scan` inside of a wrapped function hands its body an untied model. If the body
gives that model to another wrapped function, it is compared with the arguments of the outer call.

`model = apply_updates(model, updates)` rebinds a name. Where the model is an argument that shall be
updated, that alone changes nothing for the caller.
"""

import threading
from typing import Any

from pydag.jaxinterop.messages.at_call import CodeLine, line_of_call
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.messages.plain_functions import plain_trace_advice
from pydag.jaxinterop.prefixes.arguments import Args, Chosen, Kwargs
from pydag.jaxinterop.static.untraced import Options

from .lost_tie import LostTieWarning, Ties
from .lost_update import LostUpdateWarning


class _Running(threading.local):
    """The calls that run in this thread; the innermost comes last."""

    def __init__(self) -> None:
        self.calls: list[RunningCall] = []


_running = _Running()


class RunningCall:
    """A context in which a function runs that was given these arguments.

    The warning about what was noticed meanwhile comes at its end, and not if an error is raised,
    which says more.
    """

    __slots__ = ("args", "found", "kwargs", "new", "options")

    def __init__(self, args: Args, kwargs: Kwargs, options: Options) -> None:
        self.args, self.kwargs, self.options = args, kwargs, options
        self.found: tuple[CodeLine, str] | None = None
        self.new: list[tuple[Any, Any]] = []

    def __enter__(self) -> None:
        _running.calls.append(self)

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        _running.calls.pop()
        if self.found is not None and error is None:
            line, text = self.found
            line.warn(text, LostTieWarning)

    def check_rebound(self, updated: Chosen, result: Any, source: Source) -> None:
        """Warns of a new model that takes the place of an updated argument in the function alone.

        Args:
            updated: The arguments that are updated.
            result: What the function returned.
        """
        spots = updated.spots(self.args, self.kwargs) if self.new else ()
        for spot in spots:
            old = self.args[spot] if isinstance(spot, int) else self.kwargs[spot]
            made = [new for params, new in self.new if params is old]
            if not made:
                continue
            arrays = {id(x) for new in made for x in self.options.flatten(new)[0]}
            before = {id(x) for x in self.options.flatten(old)[0]}
            reached = self.options.flatten((self.args, self.kwargs, result))[0]
            if (arrays - before) and not any(id(x) in arrays - before for x in reached):
                root = f"args[{spot}]" if isinstance(spot, int) else f"kwargs[{spot!r}]"
                source.warn(
                    f"{source.text} makes a new object of {root} by apply_updates, and it is lost: "
                    "it is not in the result, and the object that was passed stays as it is\n"
                    "  update_argnums writes what changes in that object. Assigning to a name "
                    "changes none: pydag.dag_update(model, pj.apply_updates(model, updates)) does.",
                    LostUpdateWarning,
                )


def note_new(params: Any, new: Any) -> None:
    """Notices that something was made of an argument of the innermost running call."""
    calls = _running.calls
    if calls and any(params is x for x in (*calls[-1].args, *calls[-1].kwargs.values())):
        calls[-1].new.append((params, new))


def check_tied(args: Args, what: str) -> None:
    """Notices that an argument is one of an outer call's that a plain trace has untied.

    Args:
        what: Names the wrapper that is called.
    """
    calls = _running.calls
    if not calls or not (advice := plain_trace_advice()):
        return
    for call in reversed(calls):
        ties = Ties.of(call.args, call.kwargs, call.options)
        for i, arg in enumerate(args if ties is not None and call.found is None else ()):
            lost = ties.lost(arg, f"args[{i}]") if ties is not None else None
            if lost is not None:
                told = f"{what} gets what an outer function was given, but with a tie lost\n"
                call.found = line_of_call(), f"{told}{lost.text('here')}  {advice}"
                return
