# SPDX-License-Identifier: Apache-2.0
"""What the wrappers of one function by `jit` share: the function that JAX compiles, and groups.

`LeafGroups` say how the leaves of one structure are divided. They are made when the structure is
first seen, so that a call does no work per leaf outside of the core.
"""

import copyreg
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pydag._core as _core
from pydag._core import CallKey, JitCaller, PyDagSpec, SpecKey
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.function_cache import cached_for_function, frozen
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.messages.roots import CALL
from pydag.jaxinterop.notices.changing_numbers import ChangingNumbers
from pydag.jaxinterop.notices.difference import explain_cache_miss
from pydag.jaxinterop.packed.dag import unhashable
from pydag.jaxinterop.prefixes.arguments import (
    Args,
    Chosen,
    Kwargs,
    argument_text,
    by_argument,
)
from pydag.jaxinterop.prefixes.treatments import Question
from pydag.jaxinterop.refs.access import access, refs_among
from pydag.jaxinterop.refs.ref_calls import blame_rule
from pydag.jaxinterop.static.leaves import Static, is_class_traced
from pydag.jaxinterop.static.positions import static_positions
from pydag.jaxinterop.static.refused import check_weak
from pydag.jaxinterop.static.untraced import Options, Untraced, untraced_of
from pydag.jaxinterop.updates.choice import NOTHING
from pydag.sharing.tie import note_untie
from pydag.typing import Leaf

from .deleted import DELETED, blame_deleted, is_about_deleted, note_donor
from .extra_results import (
    TracedCall,
    WritesMoreError,
)
from .flat_arguments import FlatArguments
from .flat_functions import FlatFunctions
from .key import MOST, Key, Keys
from .leaf_groups import LeafGroups
from .ref_contents import RefContents, Refs
from .shardings import Shardings
from .static_arguments import KeywordOrder, StaticArguments

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

_DONATION = Question(
    "donate_argnums", str, "Donate both arguments or neither, or give one of them a copy."
)

COMPARED = 8  # structures, and static contents of each, that an explanation compares


class CompiledFunction:
    """A function with options, ready to be compiled.

    Args:
        fun: Returns the user's function, which this must not own: it outlives the wrappers.
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
        updated: Chosen = NOTHING,
    ) -> None:
        self._made_of = static, donated, shardings, options, jax_options, updated
        self.source, self._fun = source, fun
        self.functions = FlatFunctions(fun, source, shardings, options, jax_options, updated)
        self.names = self.functions.names
        self.numbers = ChangingNumbers(source)
        self.donated = donated
        if donated.numbers or donated.names:
            note_donor(self)
        self.updated = updated
        self.options = options
        # By the structure, and where refs and static leaves are among the leaves.
        self.leaf_groups: dict[tuple[SpecKey, Refs, tuple[int, ...]], LeafGroups] = {}
        self.shardings = shardings
        jitted = self.functions.jitted
        self.plans = _core.call_plans(jitted, options.namespace, options.identity, access)
        self.keywords = KeywordOrder(fun())
        self.static = StaticArguments(static, self.plans)
        self.keys = Keys()
        self.contents = RefContents(self.functions, shardings, self.keys)

    def __reduce__(self) -> tuple[Any, ...]:
        """For `cloudpickle`: where it arrives, nothing is compiled yet."""
        return _arrived, (self._fun(), *self._made_of)

    @jax_private.shortens_tracebacks
    def run(self, args: Args, kwargs: Kwargs) -> Any:
        """Calls the compiled function."""
        if self.functions.unties.is_set:
            note_untie()
        return self.with_traced_call(TracedCall.run, args, kwargs)

    @jax_private.shortens_tracebacks
    def with_traced_call(self, use: Callable[[TracedCall], R], args: Args, kwargs: Kwargs) -> R:
        """Takes a call apart, and returns what `use` makes of it."""
        while True:
            try:
                return use(self.take_apart(args, kwargs))
            except WritesMoreError as error:
                self.add_written(error)
            except (*DELETED, AssertionError) as error:
                self.blame(error, args, kwargs)
                raise

    def call(self, /, *args: Any, **kwargs: Any) -> Any:
        """`run`, with the signature of the function."""
        return self.run(args, kwargs)

    def core_caller(self) -> JitCaller:
        """The core's part of the functions that users call."""
        return _core.jit_caller(
            plans=self.plans,
            unties=self.functions.unties,
            note_untie=note_untie,
            places=self.keywords.places,
            static_numbers=self.static.chosen.numbers,
            static_names=frozenset(self.static.chosen.names),
            run=self.run,
            recover=self._recover,
        )

    def caller(self) -> Callable[..., Any]:
        """A function of a call's arguments, whose calls go straight to the core where they can."""
        caller = self.core_caller()

        # The core finds the caller as what the function closes over, so there is nothing else.
        def call(*args: Any, **kwargs: Any) -> Any:
            return caller(*args, **kwargs)

        _core.lead_calls_to_caller(call)
        return call

    def _recover(self, error: Exception, args: Args, kwargs: Kwargs) -> Any:
        """The result of a call by a plan that failed; NotImplemented where the error counts."""
        if isinstance(error, WritesMoreError):
            self.add_written(error)
            return self.run(args, kwargs)
        if isinstance(error, TypeError) and self._has_untold(args, kwargs):
            return self.run(args, kwargs)
        if isinstance(error, DELETED):
            self.blame(error, args, kwargs)
        return NotImplemented

    def arranged(self, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        """The arguments in the form in which they are flattened."""
        return self.static.wrap(args, self.keywords.of(kwargs))

    def take_apart(self, args: Args, kwargs: Kwargs) -> TracedCall:
        """A call, ready for JAX; the core gets a plan for the next one like it."""
        call = args, kwargs = self.arranged(args, kwargs)
        leaves, spec = self.options.flatten(call, CALL)
        spec_key, refs = _core.spec_key(spec), refs_among(leaves)
        positions, selected = self.positions(leaves, spec)
        groups = self.leaf_groups.get((spec_key, refs, positions))
        if groups is not None and groups.leads_away:
            check_weak((args, kwargs), leaves, spec, self.options.identity, CALL)
        key = groups.key(leaves) if groups is not None else None
        if groups is None or key is None:
            untraced = self._untraced(call, leaves, spec, positions, selected)
            groups, key = self._prepare(args, kwargs, leaves, untraced, refs)
        if refs:
            traced_call, plan = self.contents.traced_call(groups, key, leaves, refs)
            if plan is not None:
                _core.add_plan(self.plans, spec_key, plan)
            return traced_call._replace(call=call)
        flat_arguments = groups.flat_arguments
        spread = self.functions.spread if flat_arguments.is_spread else None
        if (plan := groups.plan(key, leaves, flat_arguments, function=spread)) is not None:
            _core.add_plan(self.plans, spec_key, plan)
        function, arguments = self.functions.of(flat_arguments), flat_arguments.pick(key, leaves)
        return TracedCall(function, arguments, leaves, call, is_spread=flat_arguments.is_spread)

    def add_written(self, error: WritesMoreError) -> None:
        """Notes that a function writes into more refs than was known."""
        for groups in list(self.leaf_groups.values()):  # other threads add some
            if error.key in groups.extras:
                groups.extras[error.key].add_written(error.written)
                _core.forget_plans(self.plans, groups.spec_key)

    def untraced_call(self, args: Args, kwargs: Kwargs) -> tuple[Sequence[Leaf], Untraced]:
        """The leaves of a call, and all that isn't traced of it, without a look at the function."""
        args, kwargs = self.arranged(args, kwargs)
        leaves, spec = self.options.flatten((args, kwargs), CALL)
        positions, selected = self.positions(leaves, spec)
        return leaves, self._untraced((args, kwargs), leaves, spec, positions, selected)

    def blame(self, error: Exception, args: Args, kwargs: Kwargs) -> None:
        """Says which array was deleted, or which ref a rule kept, if an error is about that."""
        blame_rule(error, lambda: self._ref_paths(args, kwargs))
        if is_about_deleted(error):
            leaves, spec = self.options.flatten(self.arranged(args, kwargs), CALL)
            spots = self.donated.spots(args, kwargs)
            blame_deleted(error, self.source, leaves, spec, spots)

    def _ref_paths(self, args: Args, kwargs: Kwargs) -> list[str]:
        leaves, spec = self.options.flatten(self.arranged(args, kwargs), CALL)
        accessors = spec.accessors()
        return [argument_text(accessors[i]) for i in refs_among(leaves)]

    def _has_untold(self, args: Args, kwargs: Kwargs) -> bool:
        """Whether a leaf is static that the core takes for an array: NumPy's, which may hold text.

        Its class doesn't tell. JAX refuses it, and Python knows the path.
        """
        leaves, spec = self.options.flatten(self.arranged(args, kwargs), CALL)
        return any(is_class_traced(leaves[i]) is None for i in self.positions(leaves, spec)[0])

    def forget_groups(self) -> None:
        self.leaf_groups.clear()
        self.numbers.forget()
        _core.forget_plans(self.plans, None)

    def _untraced(
        self,
        call: tuple[Args, Kwargs],
        leaves: Sequence[Leaf],
        spec: PyDagSpec,
        positions: tuple[int, ...],
        selected: Sequence[int],
    ) -> Untraced:
        untraced = untraced_of(leaves, spec, positions, self.options, CALL, selected)
        untraced.check_weak(call, CALL)
        return untraced.with_states(selected)

    def _prepare(
        self, args: Args, kwargs: Kwargs, leaves: Sequence[Leaf], untraced: Untraced, refs: Refs
    ) -> tuple[LeafGroups, CallKey]:
        spec_key, spec, positions = untraced.spec_key, untraced.spec, untraced.positions
        groups = self.leaf_groups.get((spec_key, refs, positions))
        if groups is None:
            donated = self._donated_leaves(args, kwargs, untraced, refs)
            sharded = self.shardings.groups(args, kwargs, self.static.chosen, self.options)
            may_repeat = self.options.identity == "nodes" or bool(_core.value_leaves(spec))
            flat_arguments = FlatArguments(
                spec,
                positions,
                donated,
                sharded,
                self.shardings.number,
                may_spread=self.functions.may_spread and not refs,
                may_repeat=may_repeat,
            )
            asks = self.options.static is not None and self.options.static.asks
            groups = LeafGroups(spec_key, positions, flat_arguments, self.keys, asks, may_repeat)
            if len(self.leaf_groups) >= MOST:
                self.forget_groups()
            self.leaf_groups[spec_key, refs, positions] = groups
            self.names.remember(flat_arguments)
            if refs:
                self.names.remember(groups.all_kept())
        for position, static in zip(positions, untraced.statics, strict=True):
            try:
                static.check_hashable()
            except TypeError as error:
                raise self._unhashable(args, kwargs, position, static.value, error) from error
        flat_arguments = groups.flat_arguments
        key = Key(untraced, flat_arguments.donated, flat_arguments.order)
        explain_cache_miss(self.source, key.untraced, self.seen())
        call_key = groups.remember(leaves, key)
        self.numbers.add(untraced)
        return groups, call_key

    def seen(self) -> Iterator[Untraced]:
        """The untraced parts of a few earlier calls, for which there may be a compilation."""
        called = [groups for groups in list(self.leaf_groups.values()) if groups.keys]
        for groups in reversed(called[-COMPARED:]):
            yield from (key.untraced for key in groups.last_keys(COMPARED))

    def positions(
        self, leaves: Sequence[Leaf], spec: PyDagSpec
    ) -> tuple[tuple[int, ...], Sequence[int]]:
        """Where the static leaves stand; and which of them `static=` selects."""
        selected = self.options.selected(leaves, spec, CALL)
        return static_positions(leaves, spec, CALL, selected), selected

    def _donated_leaves(
        self, args: Args, kwargs: Kwargs, untraced: Untraced, refs: Refs
    ) -> frozenset[int]:
        spots = self.donated.spots(args, kwargs)
        if not spots:
            return frozenset()
        traced = frozenset(untraced.traced_positions()).difference(refs)
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


def compiled_for(
    fun: F,
    static: Chosen,
    donated: Chosen,
    shardings: Shardings,
    options: Options,
    jax_options: dict[str, Any],
    updated: Chosen,
    check: Callable[[], Any] = lambda: None,
) -> tuple[F, CompiledFunction]:
    """A function equal to `fun`, and what is compiled of it: one for each function and options.

    Args:
        check: Called where it is made.
    """

    def make(get: Callable[[], Any]) -> CompiledFunction:
        check()
        made_of = static, donated, shardings, options, jax_options, updated
        return CompiledFunction(get, Source(fun), *made_of)

    shardings_key = shardings.key(options)
    key = "jit", static, donated, options, shardings_key, frozen(jax_options), updated
    return cached_for_function(fun, key, make)


def _arrived(fun: Any, *made_of: Any) -> CompiledFunction:
    return compiled_for(fun, *made_of)[1]


def _arrived_caller(compiled: CompiledFunction) -> JitCaller:
    return compiled.core_caller()


def _reduce_caller(caller: JitCaller) -> tuple[Any, ...]:
    run: Any = caller.run  # a method of the compiled function
    return _arrived_caller, (run.__self__,)


copyreg.pickle(JitCaller, _reduce_caller)
