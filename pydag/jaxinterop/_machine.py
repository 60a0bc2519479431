# SPDX-License-Identifier: Apache-2.0
"""What the wrappers of one function by `jit` share: the function that JAX compiles, and plans.

JAX is given `flat(key, donated, kept)`: the key is a static argument, the other two are flat
sequences of distinct leaves. A plan says how the leaves of one structure are divided. It is made
when the structure is first seen, so that a call does no work per leaf outside of the core.
"""

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, NamedTuple

import jax

from pydag import _core
from pydag._core import PyDagSpec
from pydag.typing import Leaf

from ._arguments import (
    Args,
    Chosen,
    Kwargs,
    argument_text,
    check_one_treatment,
    joined,
    owners,
)
from ._dag import Dag
from ._form import Form, Options, picker
from ._static import Static, static_positions

_MOST = 4096  # plans and keys that are remembered; they are easily made again

FlatArguments = tuple["Key", Sequence[Leaf], Sequence[Leaf]]


class Key(NamedTuple):
    """What a compiled function is made for, but for the shapes and types of its arrays."""

    form: Form
    donated: tuple[int, ...]  # positions among the traced leaves


class Plan:
    """How the leaves of one structure are divided."""

    def __init__(self, count: int, positions: tuple[int, ...], donated: frozenset[int]) -> None:
        traced = sorted(set(range(count)).difference(positions))
        self.positions = positions
        self.donated = tuple(i for i, leaf in enumerate(traced) if leaf in donated)
        self.pick_static = picker(positions, count)
        self.take_donated = picker([i for i in traced if i in donated], count)
        self.take_kept = picker([i for i in traced if i not in donated], count)
        self.keys: dict[tuple[Static, ...], Key] = {}
        self.recent: tuple[Sequence[Leaf], Key] | None = None
        self.plain: Key | None = None  # the key, where all leaves are traced and kept

    def key(self, leaves: Sequence[Leaf]) -> Key | None:
        """The key for these leaves, if there has been such a call.

        The very same static leaves, the ordinary case, are recognized without comparing them.
        """
        if self.recent is None:
            return None
        static = self.pick_static(leaves)
        last, key = self.recent
        if all(map(is_, static, last)):
            return key
        found = self.keys.get(tuple(map(Static, static)))
        if found is not None:
            self.recent = static, found
        return found

    def remember(self, leaves: Sequence[Leaf], key: Key) -> None:
        if len(self.keys) >= _MOST:
            self.keys.clear()
        self.keys[key.form.statics] = key
        self.recent = self.pick_static(leaves), key
        if not self.positions and not self.donated:
            self.plain = key


class Machine:
    """A function with options, ready to be compiled.

    Args:
        fun: Gives the function. The machine outlives its wrappers, so it must not own it.
    """

    def __init__(
        self,
        fun: Callable[[], Callable[..., Any] | None],
        name: str,
        static: Chosen,
        donated: Chosen,
        options: Options,
        jax_options: dict[str, Any],
    ) -> None:
        def flat(key: Key, donated: Sequence[Leaf], kept: Sequence[Leaf]) -> Dag:
            args, kwargs = key.form.build(joined(key.donated, donated, kept))
            function = fun()
            assert function is not None, "whoever calls owns the function"
            result = function(*map(_released, args), **{k: _released(v) for k, v in kwargs.items()})
            return Dag(result, namespace=options.namespace, identity=options.identity)

        flat.__name__ = flat.__qualname__ = name
        self.static = static
        self.has_static = bool(static.numbers or static.names)
        self.donated = donated
        self.options = options
        self.plans: dict[PyDagSpec, Plan] = {}
        self.jitted: Any = jax.jit(flat, static_argnums=0, donate_argnums=1, **jax_options)

    def run(self, args: Args, kwargs: Kwargs) -> Any:
        """Calls the compiled function."""
        try:
            return self.jitted(*self.take_apart(args, kwargs)).tree
        except TypeError:
            # JAX refuses, before it traces, a leaf that the plan takes for an array.
            if not self.forget_wrong_plan(args, kwargs):
                raise
        return self.jitted(*self.take_apart(args, kwargs)).tree

    def take_apart(self, args: Args, kwargs: Kwargs) -> FlatArguments:
        """The arguments of the flat function.

        Where the structure was seen before, leaves that were arrays then are taken for arrays.
        """
        if self.has_static:
            args, kwargs = self._held(args, kwargs)
        namespace, identity = self.options
        leaves, spec = _core.flatten((args, kwargs), None, False, namespace, identity)
        plan = self.plans.get(spec)
        if plan is not None and plan.plain is not None:
            return plan.plain, (), leaves
        key = plan.key(leaves) if plan is not None else None
        if plan is None or key is None:
            plan, key = self._prepare(args, kwargs, leaves, spec)
        return key, plan.take_donated(leaves), plan.take_kept(leaves)

    def forget_wrong_plan(self, args: Args, kwargs: Kwargs) -> bool:
        """Whether the plan for these arguments was made for other types of leaves."""
        if self.has_static:
            args, kwargs = self._held(args, kwargs)
        leaves, spec = self.options.flatten((args, kwargs))
        plan = self.plans.get(spec)
        is_wrong = plan is not None and plan.positions != static_positions(leaves)
        if is_wrong:
            self.plans.pop(spec, None)
        return is_wrong

    def _held(self, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        """Static arguments as leaves, which the walk won't open."""
        spots = self.static.spots(args, kwargs)
        return (
            tuple(Static(arg) if i in spots else arg for i, arg in enumerate(args)),
            {name: Static(arg) if name in spots else arg for name, arg in kwargs.items()},
        )

    def _prepare(
        self, args: Args, kwargs: Kwargs, leaves: Sequence[Leaf], spec: PyDagSpec
    ) -> tuple[Plan, Key]:
        positions = static_positions(leaves)
        plan = self.plans.get(spec)
        if plan is None or plan.positions != positions:
            plan = Plan(len(leaves), positions, self._donated_leaves(args, kwargs))
            if len(self.plans) >= _MOST:
                self.plans.clear()
            self.plans[spec] = plan
        statics = tuple(Static(leaves[i]) for i in positions)
        for position, static in zip(positions, statics, strict=True):
            try:
                static.check_hashable()
            except TypeError as error:
                raise self._unhashable(args, kwargs, position, static.value, error) from error
        key = Key(Form(spec, positions, statics), plan.donated)
        plan.remember(leaves, key)
        return plan, key

    def _donated_leaves(self, args: Args, kwargs: Kwargs) -> frozenset[int]:
        spots = self.donated.spots(args, kwargs)
        if not spots:
            return frozenset()
        check_one_treatment(
            args,
            kwargs,
            lambda spot: "donated" if spot in spots else "kept",
            "Donate both arguments or neither, or give one of them a copy.",
            self.options,
        )
        owned = owners(args, kwargs, self.options)
        return frozenset(i for i, spot in enumerate(owned) if spot in spots)

    def _unhashable(
        self, args: Args, kwargs: Kwargs, position: int, leaf: Leaf, error: TypeError
    ) -> Exception:
        path = self.options.flatten((args, kwargs))[1].paths()[position]
        where = argument_text(args, kwargs, path, self.options)
        if isinstance(leaf, Static):
            return ValueError(
                f"{where} is a static argument and can't be hashed: {error}\n"
                "  A static argument is part of the key of the compiled function. Pass a hashable "
                "value, such as a tuple for a list."
            )
        return TypeError(
            f"{where} is no array and can't be hashed: {error}\n"
            "  A leaf that JAX can't trace is part of the key of the compiled function. Make it "
            "hashable, register its class as a node, or pass it in another way."
        )


def _released(argument: Any) -> Any:
    return argument.value if type(argument) is Static else argument
