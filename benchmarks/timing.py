# SPDX-License-Identifier: Apache-2.0
"""Contests: the same work done by several contenders, in rounds, in one process.

All take their turn in each round, so that whatever else the machine does meets all of them alike.
A turn repeats the work for a few milliseconds. The garbage collector is off for all.
"""

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from timeit import Timer
from typing import Any

US = "pydag"  # contenders whose names begin so must not fail


@dataclass(frozen=True)
class Effort:
    """How much time may be spent."""

    rounds: int
    turn: float  # seconds that one contender works in one round
    patience: float  # seconds: one call that takes longer is out
    quick: bool = False


FULL = Effort(rounds=15, turn=0.004, patience=5.0)
QUICK = Effort(rounds=5, turn=0.001, patience=0.5, quick=True)


@dataclass(frozen=True)
class Times:
    """Seconds for a call, of all rounds."""

    minimum: float
    median: float

    @staticmethod
    def of(seconds: list[float]) -> "Times":
        """What is reported of the rounds."""
        return Times(min(seconds), statistics.median(seconds))


class Work:
    """A call, written out as a user writes it: a lambda around it would add to the small ones."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        names = [f"a{i}" for i in range(len(args))]
        self._timer = Timer(
            f"f({', '.join(names)})", globals={"f": function, **dict(zip(names, args, strict=True))}
        )

    def seconds(self, times: int) -> float:
        """How long it takes, all in all, to do it so many times."""
        return self._timer.timeit(times)


@dataclass
class Outcome:
    """The times of those who finished, and why the others did not."""

    times: dict[str, Times] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)


@contextmanager
def quiet() -> Iterator[None]:
    """The garbage collector doesn't run, and forgets what there is so far."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def contest(works: Mapping[str, Work], effort: Effort) -> Outcome:
    """Let all do their work in turns.

    Who raises, or loses our patience in the first call, is out; the notes say why.
    """
    outcome, repeats = Outcome(), {}
    with quiet():
        for name, work in works.items():
            try:
                first = work.seconds(1)
            except Exception as error:
                if name.startswith(US):
                    raise
                outcome.notes[name] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
                continue
            if first > effort.patience and not name.startswith(US):
                outcome.notes[name] = f"took {first:.1f} s"
                continue
            repeats[name] = max(1, round(effort.turn / _once(work, effort)))
        seconds: dict[str, list[float]] = {name: [] for name in repeats}
        for order in _orders(list(repeats), effort.rounds):
            for name in order:
                seconds[name].append(works[name].seconds(repeats[name]) / repeats[name])
    outcome.times = {name: Times.of(all_) for name, all_ in seconds.items()}
    return outcome


def _once(work: Work, effort: Effort) -> float:
    """About how long a call takes that isn't the first one, in which much may be compiled."""
    second = work.seconds(1)
    return second if second > effort.turn / 10 else work.seconds(10) / 10


def fresh_contest(
    make: Callable[[], Any], functions: Mapping[str, Callable[[Any], Any]], effort: Effort
) -> Outcome:
    """A contest in which no input is ever seen twice. Making the inputs isn't timed."""
    with quiet():
        fastest = min(_each_once(function, [make()]) for function in functions.values())
        # Making the inputs takes far longer than using them, so a turn is shorter here.
        number = max(1, min(200, round(effort.turn / 4 / fastest)))
        seconds: dict[str, list[float]] = {name: [] for name in functions}
        for order in _orders(list(functions), effort.rounds):
            for name in order:
                inputs = [make() for _ in range(number)]
                seconds[name].append(_each_once(functions[name], inputs) / number)
    return Outcome({name: Times.of(all_) for name, all_ in seconds.items()})


def prepared_contest(
    contenders: Mapping[str, tuple[Callable[[], Any], Callable[[Any], Any]]], effort: Effort
) -> Outcome:
    """A contest of calls that each come after a preparation, which isn't timed.

    What the preparation returns is the argument of the call.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    with quiet():
        for order in _orders(list(contenders), effort.rounds):
            for name in order:
                prepare, call = contenders[name]
                seconds[name] += [_each_once(call, [prepare()]) for _ in range(5)]
    return Outcome({name: Times.of(all_) for name, all_ in seconds.items()})


def _each_once(function: Callable[[Any], Any], inputs: list[Any]) -> float:
    start = time.perf_counter()
    for item in inputs:
        function(item)
    return time.perf_counter() - start


def _orders(names: list[str], rounds: int) -> Iterator[list[str]]:
    """An order for each round, always the same ones: nobody follows the same one each time."""
    random = Random(0)
    for _ in range(rounds):
        yield random.sample(names, len(names))
