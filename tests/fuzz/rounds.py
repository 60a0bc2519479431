# SPDX-License-Identifier: Apache-2.0
"""What a round of the campaign is.

A round runs one scenario. All that happens in it comes from one seeded generator, so a round can be
run again. Scenarios register themselves here; the modules that hold them are named in campaign.py.
"""

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import specimens as sp
from agreement import outcome
from isomorphism import difference
from strategies import Predicate
from trees import Grower

LARGEST = 14  # nodes of a tree
ALLOWED = (ValueError, TypeError, RuntimeError, LookupError, AttributeError, StopIteration)
"""What a call may raise that is given nonsense, CycleError, SharingError, RecursionError included.

A `SystemError` is none of them: Python raises it where the core returns wrongly.
"""


class Difference(Exception):  # noqa: N818  (it is what was found, not what failed)
    """The core does other than it should."""


@dataclass
class Round:
    """The choices of one round, and what it has built, for the report of a finding."""

    rng: random.Random
    size: int = LARGEST
    built: list[Any] = field(default_factory=list)

    def grower(self, **options: Any) -> Grower:
        """A source of trees of this round's size."""
        return Grower(self.rng, self.size, **options)

    def tree(self, **options: Any) -> Any:
        """A random DAG."""
        self.built.append(self.grower(**options).tree())
        return self.built[-1]

    def options(self) -> dict[str, Any]:
        """What every function that flattens takes."""
        return {
            "none_is_leaf": self.rng.random() < 0.3,
            "namespace": self.rng.choice(["", sp.NAMESPACE]),
            "identity": self.rng.choice(["all", "all", "nodes"]),
        }

    def predicate(self) -> Predicate:
        """An `is_leaf`, which mostly says no."""
        return Predicate(tuple(self.rng.random() < 0.2 for _ in range(self.rng.randrange(12))))

    def often(self, probability: float) -> bool:
        """Whether something happens."""
        return self.rng.random() < probability


Scenario = Callable[[Round], None]
SCENARIOS: dict[str, Scenario] = {}
WEIGHTS: dict[str, int] = {}


def scenario(weight: int = 1) -> Callable[[Scenario], Scenario]:
    """Registers a scenario, which runs `weight` times as often as one of weight 1."""

    def register(function: Scenario) -> Scenario:
        SCENARIOS[function.__name__] = function
        WEIGHTS[function.__name__] = weight
        return function

    return register


def agree(
    what: str, ours: Callable[[], Any], theirs: Callable[[], Any], *, calls: bool = True
) -> Any:
    """Calls the core and the reference; raises a `Difference` where their answers part.

    Args:
        what: The operation, for the report.
        ours: Calls the core.
        theirs: Calls the reference.
        calls: Whether the callbacks must have seen the same, too.

    Returns:
        What the core gave; `None` if both refused.
    """
    expected, events, refusal = outcome(theirs)
    got, seen, error = outcome(ours)
    if error != refusal:
        raise Difference(
            f"{what}: the core raises {error or 'nothing'}, the reference {refusal or 'nothing'}"
        )
    if error:
        return None
    same(f"{what}: result", got, expected)
    if calls:
        same(f"{what}: calls", seen, events)
    return got


def same(what: str, got: Any, expected: Any) -> None:
    """Raises a `Difference` where two object graphs part.

    What holds itself and has no identity can't be compared: an `is_leaf` may have kept it whole.
    """
    with contextlib.suppress(RecursionError):
        if told := difference(got, expected):
            raise Difference(f"{what}: {told} (the core's comes first)")


def expect(what: str, is_so: bool) -> None:
    """Raises a `Difference` if something isn't so."""
    if not is_so:
        raise Difference(what)


def run(seed: str, only: str | None = None, size: int = LARGEST) -> tuple[str, Round, str]:
    """One round: (the name of its scenario, the round, what was found); "" if all was well."""
    chosen = random.Random(f"{seed} scenario").choices(list(SCENARIOS), list(WEIGHTS.values()))
    name = only or chosen[0]
    this = Round(random.Random(seed), size)
    try:
        SCENARIOS[name](this)
    except Difference as found:
        return name, this, f"{found}"
    except Exception as error:  # an escaped one is a finding: scenarios catch what is allowed
        return name, this, f"{type(error).__name__} escaped: {error}"
    return name, this, ""
