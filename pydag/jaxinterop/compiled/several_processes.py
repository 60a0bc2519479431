# SPDX-License-Identifier: Apache-2.0
"""When a program of several processes compares what it compiles: before it traces a function.

JAX traces a function when it is called, and hands the program to nobody. So a trace that begins in
a program of several processes raises `TraceBeginsError`; whoever made the call catches it, lowers
the function, compares (`compared_programs`), and calls again. Nothing of this happens in calls that
need no trace.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pydag.jaxinterop.foreign import jax_private

_may_trace: ContextVar[bool] = ContextVar("may_trace", default=False)


class TraceBeginsError(Exception):
    """A function would be traced, in a program of several processes."""


def check_trace() -> None:
    """Called when a trace begins.

    Raises:
        TraceBeginsError: There are several processes, and nobody has allowed traces yet.
    """
    if jax_private.num_processes() > 1 and not _may_trace.get():
        raise TraceBeginsError


@contextmanager
def traces_allowed() -> Iterator[None]:
    """Within this, functions are traced as in a program of one process."""
    token = _may_trace.set(True)
    try:
        yield
    finally:
        _may_trace.reset(token)
