# SPDX-License-Identifier: Apache-2.0
"""What the wrappers of one function by `jit` share: the function that JAX compiles, and groups.

JAX is given `flat(key, donated, kept)`: the key is a static argument, the other two are flat
sequences of distinct leaves, or, where leaves get different shardings, one sequence for each.
`LeafGroups` say how the leaves of one structure are divided. They are made when the structure is
first seen, so that a call does no work per leaf outside of the core.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any

import jax

from pydag import _core
from pydag._core import Hashed, PyDagSpec, SpecKey
from pydag.jaxinterop.boundary.blame import blaming_value
from pydag.jaxinterop.boundary.dag import unhashable
from pydag.jaxinterop.boundary.result import result
from pydag.jaxinterop.messages.naming import Source, named
from pydag.jaxinterop.messages.roots import CALL
from pydag.jaxinterop.prefixes.arguments import Args, Chosen, Kwargs, argument_text, by_argument
from pydag.jaxinterop.prefixes.treatments import Question
from pydag.jaxinterop.static.constants import State
from pydag.jaxinterop.static.leaves import Static
from pydag.jaxinterop.static.positions import static_positions
from pydag.jaxinterop.static.untraced import Options, Untraced, untraced_of
from pydag.jaxinterop.static.weak_references import check_weak
from pydag.sharing.tie import note_untie, num_unties
from pydag.typing import Dag, Leaf

from .changes import Changes
from .difference import explain_cache_miss
from .flat_names import FlatNames
from .given import Given
from .leaf_groups import MOST, Key, LeafGroups, LookAgain
from .lost_tie import Ties
from .shardings import Shardings
from .static_arguments import KeywordOrder, StaticArguments

_DONATION = Question(
    "donate_argnums", str, "Donate both arguments or neither, or give one of them a copy."
)

MOST_WATCHED = 16  # constant objects are looked at before the core is asked

COMPARED = 8  # as many structures, and static contents of each, are looked at for an explanation

FlatArguments = tuple[Hashed, Sequence[Leaf], Sequence[Leaf]]
"""A `Key`, the donated leaves, the kept ones."""


class CompiledFunction:
    """A function with options, ready to be compiled.

    Args:
        fun: Gives the function. The compiled function outlives its wrappers, so it must not own it.
        source: Of the function.
    """

    def __init__(
        self,
        fun: Callable[[], Callable[..., Any]],
        source: Source,
        static: Chosen,
        donated: Chosen,
        shardings: Shardings,
        options: Options,
        jax_options: dict[str, Any],
    ) -> None:
        def flat(hashed: Hashed, donated: Sequence[Any], kept: Sequence[Any]) -> Any:
            key: Key = hashed.value
            args, kwargs = key.build(donated, kept)
            is_tied = key.untraced.spec.num_shared > 0
            ties = Ties.of(args, kwargs, options) if is_tied else None
            before = num_unties()
            with (
                blaming_value(key.untraced, key.join(donated, kept), CALL),
                Given(args, kwargs, options),
            ):
                result = fun()(*args, **kwargs)
            packed = pack(result)
            if num_unties() != before:
                self.unties = True
            elif ties is not None:
                ties.check(result, source)
            return packed

        outputs = shardings.outputs(options)

        def pack(tree: Dag) -> Any:
            return result(tree, options) if outputs.is_one else outputs.pack(tree)

        self.source = source
        self.unties = False  # whether it does so on purpose: each call must tell who traces it
        self.names = FlatNames()
        self.keywords = KeywordOrder(fun())
        self.static = StaticArguments(static)
        self.changes = Changes(source)
        self.has_static = bool(static.numbers or static.names)
        self.donated = donated
        self.options = options
        self.leaf_groups: dict[SpecKey, LeafGroups] = {}
        self.shardings = shardings
        self.jitted: Any = jax.jit(
            named(flat, source, self.names),
            static_argnums=0,
            donate_argnums=1,
            **shardings.for_jax(options),
            **jax_options,
        )
        self.watched: list[State] = []  # what constant objects held when recipes were made
        # With the groups' recipes, for the core.
        self.flat_call = _core.flat_call(self.jitted, options.namespace, options.identity)

    def run(self, args: Args, kwargs: Kwargs) -> Any:
        """Calls the compiled function."""
        if self.unties:
            note_untie()
        try:
            return _core.build_result(self.jitted(*self.take_apart(args, kwargs)))
        except TypeError:
            # JAX refuses, before it traces, a leaf that the groups take for an array.
            if not self.forget_wrong_groups(args, kwargs):
                raise
        return _core.build_result(self.jitted(*self.take_apart(args, kwargs)))

    def call(self, /, *args: Any, **kwargs: Any) -> Any:
        """The same with the signature of the function."""
        return self.run(args, kwargs)

    def caller(self) -> Callable[..., Any]:
        """A function that takes the arguments of a call; one frame and the core, where it can."""
        short, flat_call = _core.call_flat, self.flat_call
        has_static, arranged = self.has_static, self.arranged
        watched = self.watched

        def call(*args: Any, **kwargs: Any) -> Any:
            if self.unties:
                note_untie()
            try:
                if watched and not self.is_current():
                    answer = NotImplemented
                elif has_static or kwargs:
                    answer = short(flat_call, *arranged(args, kwargs))
                else:
                    answer = short(flat_call, args, kwargs)
            except TypeError:
                if not self.forget_wrong_groups(args, kwargs):
                    raise
                answer = NotImplemented
            return self.run(args, kwargs) if answer is NotImplemented else answer

        return call

    def is_current(self) -> bool:
        """Whether the constant objects that recipes were made for still hold the same."""
        if all(state.is_current() for state in self.watched):
            return True
        self.forget_recipes()
        return False

    def _watch(self, states: Sequence[State]) -> None:
        """Notes what recipes were made for."""
        if len(self.watched) + len(states) > MOST_WATCHED:
            self.forget_recipes()
        known = set(map(id, self.watched))
        self.watched += [state for state in states if id(state) not in known]

    def forget_recipes(self) -> None:
        """Lets the next calls be looked at in full."""
        self.watched.clear()
        _core.forget_recipes(self.flat_call, None)

    def arranged(self, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        """The arguments as they are flattened."""
        return self.static.wrap(args, self.keywords.of(kwargs))

    def take_apart(self, args: Args, kwargs: Kwargs) -> FlatArguments:
        """The arguments of the flat function.

        Where the structure was seen before, leaves that were arrays then are taken for arrays.
        """
        args, kwargs = self.arranged(args, kwargs)
        leaves, spec = self.options.flatten((args, kwargs), CALL)
        spec_key = _core.spec_key(spec)
        groups = self.leaf_groups.get(spec_key)
        is_known = groups is not None and groups.fits(leaves)
        if groups is not None and groups.leads_away:
            check_weak((args, kwargs), leaves, spec, self.options.identity, CALL)
        key = groups.key(leaves) if groups is not None and is_known else None
        if groups is None or key is None:
            groups, key = self._prepare(args, kwargs, leaves, spec_key)
        if (recipe := groups.recipe()) is not None:
            if groups.watched:
                self._watch(groups.watched)
            _core.add_recipe(self.flat_call, spec_key, recipe)
        return key, groups.take_donated(leaves), groups.take_kept(leaves)

    def forget_wrong_groups(self, args: Args, kwargs: Kwargs) -> bool:
        """Whether the groups for these arguments were made for other types of leaves."""
        args, kwargs = self.arranged(args, kwargs)
        leaves, spec = self.options.flatten((args, kwargs), CALL)
        spec_key = _core.spec_key(spec)
        groups = self.leaf_groups.get(spec_key)
        is_wrong = groups is not None and groups.positions != self.positions(leaves, spec)[0]
        if is_wrong:
            self.leaf_groups.pop(spec_key, None)
            _core.forget_recipes(self.flat_call, spec_key)
        return is_wrong

    def forget_groups(self) -> None:
        self.leaf_groups.clear()
        self.changes.forget()
        self.forget_recipes()

    def _prepare(
        self, args: Args, kwargs: Kwargs, leaves: Sequence[Leaf], spec_key: SpecKey
    ) -> tuple[LeafGroups, Hashed]:
        spec = spec_key.spec
        positions, selected = self.positions(leaves, spec)
        untraced = untraced_of(leaves, spec, positions, self.options, CALL, selected)
        untraced.check_weak((args, kwargs), CALL)
        untraced = untraced.with_states(selected)
        groups = self.leaf_groups.get(spec_key)
        if groups is None or groups.positions != positions:
            traced = frozenset(untraced.traced_positions())
            donated = self._donated_leaves(args, kwargs, traced)
            sharded = self.shardings.groups(args, kwargs, self.static.chosen, self.options)
            look = self._look_again(spec)
            groups = LeafGroups(spec, positions, donated, look, sharded, self.shardings.number)
            if len(self.leaf_groups) >= MOST:
                self.forget_groups()
            self.leaf_groups[spec_key] = groups
            self.names.remember(groups)
        for position, static in zip(positions, untraced.statics, strict=True):
            try:
                static.check_hashable()
            except TypeError as error:
                raise self._unhashable(args, kwargs, position, static.value, error) from error
        key = Key(untraced, groups.donated, groups.order)
        explain_cache_miss(self.source, key.untraced, self.seen())
        hashed = groups.remember(leaves, key)
        self.changes.add(key.untraced, [leaves[i] for i in key.untraced.traced_positions()])
        return groups, hashed

    def seen(self) -> Iterator[Untraced]:
        """The untraced part of a few calls before, of which each may have been compiled for."""
        called = [groups for groups in self.leaf_groups.values() if groups.keys]
        for groups in reversed(called[-COMPARED:]):
            yield from (key.untraced for key in groups.last_keys(COMPARED))

    def positions(
        self, leaves: Sequence[Leaf], spec: PyDagSpec
    ) -> tuple[tuple[int, ...], Sequence[int]]:
        """Where the static leaves stand; and which of them `static=` selects."""
        selected = self.options.selected(leaves, spec, CALL)
        return static_positions(leaves, spec, CALL, selected), selected

    def _look_again(self, spec: PyDagSpec) -> LookAgain:
        static = self.options.static
        return LookAgain(
            lambda leaves: self.positions(leaves, spec)[0],
            looks_at_all=static is not None and not static.is_structural,
            asks=static is not None and static.asks,
        )

    def _donated_leaves(self, args: Args, kwargs: Kwargs, traced: Container[int]) -> frozenset[int]:
        spots = self.donated.spots(args, kwargs)
        if not spots:
            return frozenset()
        given = by_argument(
            args,
            kwargs,
            lambda spot: "donated" if spot in spots else "kept",
            _DONATION,
            self.options,
            traced,
        )
        return frozenset(i for i, treatment in enumerate(given) if treatment == "donated")

    def _unhashable(
        self, args: Args, kwargs: Kwargs, position: int, leaf: Leaf, error: TypeError
    ) -> Exception:
        accessor = self.options.flatten((args, kwargs))[1].accessors()[position]
        where = argument_text(accessor)
        if isinstance(leaf, Static):
            return ValueError(
                f"{where} is a static argument and can't be hashed: {error}\n"
                "  A static argument is part of the key of the compiled function. Pass a hashable "
                "value, such as a tuple for a list."
            )
        return unhashable(where, error, leaf)
