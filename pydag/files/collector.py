# SPDX-License-Identifier: Apache-2.0
"""Python's collector, paused while a file is read.

Reading makes many objects at once, and no garbage. The collector would traverse these objects again
and again, which takes a third of the time.
"""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """A context, or a decorator, with the collector off. No user code may run: it could notice."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
