# SPDX-License-Identifier: Apache-2.0
"""The calls that are running, whose arguments show that a plain function of JAX lost a tie.

A plain `jax.lax.scan` inside of a wrapped function hands its body an untied model. If the body
gives that model to another wrapped function, it is compared with the arguments of the outer call.
"""

import threading

from pydag.jaxinterop.messages.at_call import CodeLine, line_of_call
from pydag.jaxinterop.messages.plain_trace import plain_trace_advice
from pydag.jaxinterop.prefixes.arguments import Args, Kwargs
from pydag.jaxinterop.static.untraced import Options

from .lost_tie import LostTieWarning, Ties


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

    __slots__ = ("args", "found", "kwargs", "options")

    def __init__(self, args: Args, kwargs: Kwargs, options: Options) -> None:
        self.args, self.kwargs, self.options = args, kwargs, options
        self.found: tuple[CodeLine, str] | None = None

    def __enter__(self) -> None:
        _running.calls.append(self)

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        _running.calls.pop()
        if self.found is not None and error is None:
            line, text = self.found
            line.warn(text, LostTieWarning)


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
