# SPDX-License-Identifier: Apache-2.0
"""Threads that start together."""

import threading
from collections.abc import Callable
from typing import Any

THREADS = 8


def outcomes(work: Callable[[int], Any], count: int = THREADS) -> list[Any]:
    """What `work(0)`, `work(1)`, ... return or raise, in threads that start together."""
    results: list[Any] = [None] * count
    barrier = threading.Barrier(count)

    def run(i: int) -> None:
        barrier.wait()
        try:
            results[i] = work(i)
        except BaseException as error:  # the caller looks at it
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def checked(results: list[Any]) -> list[Any]:
    """The outcomes; raises the first error among them."""
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def in_parallel(work: Callable[[int], Any]) -> list[Any]:
    """What `work(0)`, `work(1)`, ... return."""
    return checked(outcomes(work))
