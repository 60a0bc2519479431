# SPDX-License-Identifier: Apache-2.0
"""The functions that JAX compiles for one function by `jit`.

JAX is given `flat(key, donated, kept)`: the key is a static argument, the other two are flat
sequences of distinct leaves, or, where leaves get different shardings, one sequence for each.
Where no leaf is donated, and all get one sharding, JAX is given the leaves one by one.
"""

import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any

import jax

import pydag._core as _core
from pydag._core import CallKey
from pydag.jaxinterop.messages.naming import Source, named
from pydag.jaxinterop.messages.roots import CALL
from pydag.jaxinterop.notices.blame import blaming_value
from pydag.jaxinterop.notices.lost_tie import Ties
from pydag.jaxinterop.notices.running import RunningCall
from pydag.jaxinterop.packed.given import GivenTree
from pydag.jaxinterop.prefixes.arguments import Chosen
from pydag.jaxinterop.refs.results import given_refs
from pydag.jaxinterop.static.untraced import Options
from pydag.jaxinterop.updates.choice import NOTHING
from pydag.jaxinterop.updates.update import update_of
from pydag.sharing.tie import num_unties

from .extra_results import run_with_contents
from .flat_arguments import FlatArguments
from .flat_names import FlatNames, SpreadNames
from .key import Key, unwrapped
from .shardings import Shardings


class Made:
    """Something that is made when it is first asked for.

    Attributes:
        found: It, once it was made.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self._lock = make, threading.Lock()
        self.found: tuple[Any, ...] = ()

    def __call__(self) -> Any:
        if not self.found:
            with self._lock:
                self.found = self.found or (self._make(),)
        return self.found[0]


class FlatFunctions:
    """What `jax.jit` made of a function with options.

    Args:
        fun: Gives the function. What JAX keeps outlives the wrappers, so it must not own it.
        source: Of the function.
        updated: Of which arguments the changes come out.

    Attributes:
        jitted: Takes the leaves as they are, refs among them.
        inner: As `jitted`, with all leaves kept, and without options: `with_extras` calls it.
        spread: As `jitted`, of a key and all leaves one by one: `spread(key, *leaves)`.
        unties: Whether the function unties on purpose: then each call notes that for who traces it.
        with_extras: Takes contents in the place of refs, and returns those that were written.
    """

    def __init__(
        self,
        fun: Callable[[], Callable[..., Any]],
        source: Source,
        shardings: Shardings,
        options: Options,
        jax_options: dict[str, Any],
        updated: Chosen,
    ) -> None:
        # What JAX has owns these, and not the compiled function.
        unties = self.unties = _core.flag()

        def flat(call_key: CallKey, donated: Sequence[Any], kept: Sequence[Any]) -> Any:
            key: Key = call_key.value
            leaves = key.join(donated, kept)
            given = GivenTree(key.untraced, leaves, CALL)
            args, kwargs = unwrapped(given.tree)
            is_tied = key.untraced.spec.num_shared > 0
            ties = Ties.of(args, kwargs, options) if is_tied else None
            before = num_unties()
            running = RunningCall(args, kwargs, options)
            with blaming_value(key.untraced, leaves, CALL), running:
                result = fun()(*args, **kwargs)
            update = update_of(given, updated, result, source, is_staged=True)
            packed = outputs.pack(result, given=given_refs(key.untraced, leaves))
            running.check_rebound(updated, result, source)
            if num_unties() != before:
                unties.set()
            elif ties is not None:
                ties.check(result, source)
            return packed if updated == NOTHING else update.beside(packed)

        outputs = shardings.outputs(options)

        def spread(call_key: CallKey, *leaves: Any) -> Any:
            return flat(call_key, (), leaves)

        def with_extras(call_key: CallKey, donated: Sequence[Any], kept: Sequence[Any]) -> Any:
            return run_with_contents(inner(), call_key.value, donated, kept)

        self.source = source
        names = self.names = FlatNames()
        self.may_spread = not shardings.has_given_in and "abstracted_axes" not in jax_options

        def jitted(fun: Any, signature: inspect.Signature, **own: Any) -> Any:
            return jax.jit(named(fun, source, signature), static_argnums=0, **own)

        def with_options(fun: Any, signature: Any, has_extras: bool = False, **own: Any) -> Any:
            own |= shardings.for_jax(options, updates=updated != NOTHING, has_extras=has_extras)
            return jitted(fun, signature, **own, **jax_options)

        self.jitted: Any = with_options(flat, names, donate_argnums=1)
        # Most functions need none of these, or one.
        inner = self._inner = Made(lambda: jitted(flat, names))
        self._spread = Made(lambda: with_options(spread, SpreadNames()))
        self._with_extras = Made(lambda: with_options(with_extras, names, True, donate_argnums=1))

    @property
    def inner(self) -> Any:
        return self._inner()

    @property
    def spread(self) -> Any:
        return self._spread()

    @property
    def with_extras(self) -> Any:
        return self._with_extras()

    def of(self, flat_arguments: FlatArguments) -> Any:
        """The function that takes these arguments, refs as they are."""
        return self.spread if flat_arguments.is_spread else self.jitted

    def cache_size(self) -> int:
        """For how many kinds of arguments JAX has a way into the compiled function."""
        made = self._spread.found, self._with_extras.found
        functions = [self.jitted, *(function for own in made for function in own)]
        return int(sum(function._cache_size() for function in functions))

    def clear_caches(self) -> None:
        """Lets JAX forget what it compiled."""
        self.jitted.clear_cache()
        for made in (self._inner, self._spread, self._with_extras):
            for compiled in made.found:
                compiled.clear_cache()
