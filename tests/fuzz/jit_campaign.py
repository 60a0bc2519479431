# SPDX-License-Identifier: Apache-2.0
"""A random campaign against compiled calls: `python tests/fuzz/jit_campaign.py --seconds 60`.

A compiled function remembers much from call to call. Its arguments are changed between the calls,
and what it sees of them must be what the same function sees in plain Python. A call that fails must
fail for a function that was never called before, too. At the end some rounds are run again, each in
a process of its own that remembers nothing, and must give the same answers.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jit_trees import Growing, changeable, seen

import pydag
from pydag import jaxinterop as pj

LARGEST = 25  # objects of a tree that can be changed
CALLS = 25  # of a round
REFUSALS = (TypeError, ValueError, pydag.CycleError)
STATICS = [1, (1, 2), (True, 2), (1.0, 2), "a", True, 1.0, -0.0, 0.0, ("a", ("b", 1))]


class Found(Exception):  # noqa: N818  (it is what was found, not what failed)
    """A compiled function does other than it should, in one of the rounds."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(text)
        self.number = number


def body(*args: Any, **kwargs: Any) -> tuple[str, Any]:
    """The function that is compiled."""
    return seen((args, kwargs))


OPTIONS: list[dict[str, Any]] = [
    {},
    {"static_argnums": (1,)},
    {"donate_argnums": ()},
    {"identity": "nodes"},
]


def compiled(options: dict[str, Any]) -> Callable[..., Any]:
    """The function, compiled anew: another function to JAX and to pydag."""
    return pj.jit(lambda *args, **kwargs: body(*args, **kwargs), **options)


class Campaign:
    """Rounds, and the functions that are called in all of them."""

    def __init__(self, seed: str) -> None:
        self.seed = seed
        self.functions = [compiled(options) for options in OPTIONS]
        self.number, self.calls, self.refusals = 0, 0, Counter[str]()

    def round(self, number: int) -> list[str]:
        """The answers of the functions in one round, of which all choices come from its number.

        Raises:
            Found: One of them is wrong.
        """
        self.number, grow = number, Growing(random.Random(f"{self.seed}/{number}"))
        if grow.often(0.05):
            jax.clear_caches()  # type: ignore[no-untyped-call]  # of JAX's
        trees = [grow.tree(3) for _ in range(3)]
        answers: list[str] = []
        while len(answers) < CALLS:
            i = grow.rng.randrange(3)
            if grow.often(0.1) or len(list(changeable(trees[i]))) > LARGEST:
                trees[i] = grow.tree(3)
            if grow.often(0.7):
                grow.change(trees[i])
            which = grow.rng.randrange(len(OPTIONS))
            args = [trees[i], *([grow.rng.choice(STATICS)] if which == 1 else [])]
            names = grow.rng.sample(["p", "q"], grow.rng.choice([0, 0, 1, 2]))
            kwargs = {name: jnp.ones(grow.rng.choice([1, 2])) for name in names}
            for _ in range(grow.rng.randrange(1, 4)):
                answers.append(self._call(which, args, kwargs))
        return answers

    def _call(self, which: int, args: Any, kwargs: Any) -> str:
        self.calls += 1
        try:
            words, total = self.functions[which](*args, **kwargs)
        except REFUSALS as error:
            self._check_refusal(error, which, args, kwargs)
            self.refusals[f"{type(error).__name__}: {error}".split("\n")[0][:70]] += 1
            return type(error).__name__
        expected, amount = body(*args, **kwargs)
        # With identity="nodes" an array is another one at each of its places.
        is_comparable = OPTIONS[which].get("identity") != "nodes" or "again" not in expected
        is_same = words == expected and abs(total - amount) <= 1e-3 * (1 + abs(amount))
        if is_comparable and not is_same:
            raise Found(
                self.number,
                f"compiled with {OPTIONS[which]} it sees\n  {words} {total}\nand in plain Python\n"
                f"  {expected} {amount}",
            )
        return f"{words} {float(total):.4g}"

    def _check_refusal(self, error: Exception, which: int, args: Any, kwargs: Any) -> None:
        try:
            compiled(OPTIONS[which])(*args, **kwargs)
        except REFUSALS:
            return
        raise Found(
            self.number,
            f"compiled with {OPTIONS[which]} it raises {error!r}, and a new one doesn't, for\n"
            f"  {body(*args, **kwargs)[0]}",
        )


def alone(seed: str, number: int) -> list[str]:
    """The answers of a round in a process that runs nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "answers"
        command = [sys.executable, __file__, "--seed", seed, "--first", str(number)]
        subprocess.run(
            [*command, "--rounds", "1", "--cold", "0", "--answers", str(place)],
            env=os.environ | {"PYTHONHASHSEED": "0"},
            check=False,
            timeout=600,
        )
        found: list[str] = json.loads(place.read_text()) if place.exists() else []
        return found


def compare_with_cold(seed: str, answers: dict[int, list[str]], count: int) -> None:
    """Runs some of the rounds again, each in a process of its own.

    Raises:
        Found: It gives other answers there.
    """
    for number in random.Random(seed).sample(sorted(answers), min(count, len(answers))):
        cold = alone(seed, number)
        if cold != answers[number]:
            pairs = enumerate(zip(answers[number], cold, strict=False))
            first = next((i for i, (warm, other) in pairs if warm != other), len(cold))
            raise Found(
                number,
                f"call {first} is\n  {answers[number][first : first + 1]}\n"
                f"and in a process of its own\n  {cold[first : first + 1]}",
            )


def main(given: list[str]) -> int:
    """The program."""
    parser = argparse.ArgumentParser(description="A random campaign against compiled calls.")
    add = parser.add_argument
    add("--seconds", type=float, default=60.0, help="how long it runs")
    add("--seed", default=None, help="of all choices; another one each time if left out")
    add("--first", type=int, default=0, help="the first round")
    add("--rounds", type=int, default=10**9, help="how many rounds at most")
    add("--cold", type=int, default=3, help="how many of them are run again in a new process")
    add("--answers", type=Path, default=None, help=argparse.SUPPRESS)  # where they are written
    options = parser.parse_args(given)
    seed = options.seed or str(random.SystemRandom().randrange(10**6))
    warnings.simplefilter("ignore")
    campaign, answers = Campaign(seed), dict[int, list[str]]()
    end, number = time.monotonic() + options.seconds, options.first
    try:
        while number < options.first + options.rounds and time.monotonic() < end:
            answers[number] = campaign.round(number)
            number += 1
        compare_with_cold(seed, answers, options.cold)
    except Found as found:
        count = found.number + 1 - options.first
        print(f"FOUND by seed {seed}, round {found.number}: {found}")
        print(f"  alone: --seed {seed} --first {found.number} --rounds 1")
        print(f"  with all before it: --seed {seed} --first {options.first} --rounds {count}")
        return 1
    if options.answers:
        options.answers.write_text(json.dumps(answers[options.first]))
    refused = dict(campaign.refusals.most_common(5))
    print(f"seed {seed}: {len(answers)} rounds, {campaign.calls} calls, refused: {refused}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
