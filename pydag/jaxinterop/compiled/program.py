# SPDX-License-Identifier: Apache-2.0
"""What JAX compiles: one jitted function for each content of a function's arguments.

JAX gets the traced leaves and nothing else: few one by one, which it calls fastest; many in two
lists, kept and donated ones, which it traces fastest. The function that it calls closes over the
content.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp

import pydag._core as _core
from pydag.jaxinterop.calls import first_arrays, run
from pydag.jaxinterop.content.content import Content
from pydag.jaxinterop.content.leaves import is_number
from pydag.jaxinterop.content.options import CALL, Options
from pydag.jaxinterop.content.packed import refs_among, unpack
from pydag.jaxinterop.content.values import is_settled
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.naming import Source, named
from pydag.jaxinterop.refs import WritesMoreError, check_not_closed_over, contents_in, with_contents
from pydag.jaxinterop.treatments.arguments import Chosen, StaticArgument
from pydag.jaxinterop.treatments.outputs import Outputs
from pydag.sharing.tie import num_unties
from pydag.typing import Leaf

_Positions = tuple[int, ...]
_FEW = 16


class Recipe(NamedTuple):
    """What all programs of a function have in common."""

    get: Callable[[], Callable[..., Any]]  # gives the user's function
    source: Source
    options: Options
    outputs: Outputs  # the treatments of its result
    updated: Chosen  # the arguments that are updated
    jax_options: dict[str, Any]  # of `jax.jit`
    unties: list[bool]  # not empty once the function has untied something on purpose

    def flat(self, content: Content, first: Sequence[Leaf], donated: _Positions) -> Any:
        """The function of leaves that JAX traces; see `Program`."""
        arrays = first_arrays(first, content.spec.num_shared)

        def flat(*leaves: Leaf) -> Any:
            before = num_unties()
            tree: Any = content.build(leaves)
            result, update = run(
                *(self.get(), tree, self.options, self.source),
                updated=self.updated,
                donated=[leaves[i] for i in donated],
                starts=(arrays, leaves),
            )
            if num_unties() != before:
                self.unties.append(True)
            packed = self.outputs.pack(result, refs_among(content, leaves), makes_refs=True)
            return _core.make_updated(None, (packed, *update)) if self.updated else packed

        return named(flat, self.source, functools.partial(content.paths, CALL))


class Program:
    """A jitted function for one content.

    Args:
        content: Of the arguments.
        first: The traced leaves of the first call. They aren't owned.
        donated: Positions among the traced leaves.
        shardings: One for each traced leaf; None where nothing is said.
        refs: Positions, among the traced leaves, of refs whose contents are passed.
        passes_refs: Whether there are other refs, which JAX is given.
    """

    def __init__(
        self,
        recipe: Recipe,
        content: Content,
        first: Sequence[Leaf],
        donated: _Positions,
        shardings: Sequence[Any] | None,
        refs: _Positions,
        passes_refs: bool,
    ) -> None:
        self.content, self.refs, self.written = content, refs, _Positions()
        self._recipe, self._donated, self._shardings = recipe, donated, shardings
        self._count = content.spec.num_leaves - len(content.positions)
        self._in_lists = self._count > _FEW
        flat = recipe.flat(content, first, donated)
        self._closes_over_refs, self._passes_refs = False, passes_refs
        may_repeat = recipe.options.identity == "nodes" or bool(_core.value_leaves(content.spec))
        self._copy: Callable[[Leaf], Leaf] | None = _copy if donated and may_repeat else None
        self._inner = jax.jit(flat) if refs else None
        self.jitted: Any = None if refs else self._jitted(flat, donated)

    def _jitted(self, flat: Any, donated: _Positions) -> Any:
        prefix = self._recipe.outputs.prefix
        self._overwritten = donated
        given: dict[str, Any] = {"donate_argnums": donated}
        if self._in_lists:
            flat, given["donate_argnums"] = self._of_lists(flat), (1,) if donated else ()
        if self._shardings is not None:
            given["in_shardings"] = tuple(self._passed(self._shardings))
        if prefix is not None:
            if self._recipe.updated:
                prefix = _core.make_updated(None, (prefix, None, cast(Any, None)))
            given["out_shardings"] = (prefix, None) if self.written else prefix
        return jax.jit(flat, **given, **self._recipe.jax_options)

    def _passed(self, leaves: Sequence[Any]) -> list[Any]:
        """The arguments of the jitted function, of what stands for the traced leaves."""
        if not self._in_lists:
            return list(leaves)
        overwritten = frozenset(self._overwritten)
        kept = [leaf for i, leaf in enumerate(leaves) if i not in overwritten]
        return [kept, [leaves[i] for i in self._overwritten]]

    def _of_lists(self, flat: Any) -> Any:
        kept, overwritten = self._passed(range(self._count))
        order, content = [*kept, *overwritten], self.content
        places = sorted(range(len(order)), key=order.__getitem__)

        def of_lists(kept: list[Leaf], donated: list[Leaf]) -> Any:
            return flat(*map([*kept, *donated].__getitem__, places))

        def paths() -> Sequence[str]:  # doesn't own this program: see `LeafNames`
            found = content.paths(CALL)
            return [found[i] for i in order]

        return named(of_lists, self._recipe.source, paths)

    def prepare(self, leaves: Sequence[Leaf]) -> None:
        """Finds out into which refs the function writes, before its first call."""
        if self._inner is not None and (self.jitted is None or self._closes_over_refs):
            traced, paths = self._inner.trace(*leaves), self.content.paths(CALL)
            self._closes_over_refs = check_not_closed_over(
                traced, leaves, self.refs, paths.__getitem__
            )
            if self.jitted is None:
                self.write(jax_private.written_inputs(traced).intersection(self.refs))

    def write(self, more: frozenset[int]) -> None:
        """Lets more contents come out."""
        self.written = tuple(sorted({*self.written, *more}))
        written, refs = self.written, self.refs

        def check(traced: Any) -> None:
            found = jax_private.written_inputs(traced).intersection(refs)
            if not found.issubset(written):
                raise WritesMoreError(found)

        flat = with_contents(self._inner, refs, written, check)
        donated = tuple(sorted({*self._donated, *self.written}))
        paths = functools.partial(self.content.paths, CALL)
        self.jitted = self._jitted(named(flat, self._recipe.source, paths), donated)

    def arguments(self, leaves: Sequence[Leaf]) -> list[Any]:
        """What the jitted function is called with."""
        found = list(leaves)
        if self.refs:
            found = contents_in(leaves, self.refs, self.written)
        if self._copy is not None:
            found = _core.donated_apart(found, self._donated, self._copy)
        return self._passed(found)

    def call(self, leaves: Sequence[Leaf], call: Any) -> Any:
        """The result of a call with these leaves; new contents of refs are written."""
        returned = self.jitted(*self.arguments(leaves))
        if self.written:
            returned, contents = returned
            for i, content in zip(self.written, contents, strict=True):
                jax_private.set_content(leaves[i], content)
        return unpack(returned, self.content.all_leaves(leaves), call)

    def plan(self, leaves: Sequence[Leaf], statics: tuple[Leaf, ...]) -> Any:
        """How the core makes calls with these very static leaves; None if it can't."""
        values = [x.value if type(x) is StaticArgument else x for x in statics]
        if self._closes_over_refs or self._passes_refs or not all(map(is_settled, values)):
            return None
        content, options = self.content, self._recipe.options
        doubtful: list[int] = []  # numbers, of which a predicate may select others
        if options.static is not None and options.has_predicate():
            doubtful = [i for i, leaf in enumerate(leaves) if is_number(leaf)]
        positions = content.traced_positions()
        donated = [positions[i] for i in sorted({*self._donated, *self.written})]
        return _core.call_plan(
            classes=tuple(map(type, content.all_leaves(leaves))),
            static_positions=[*content.positions, *[positions[i] for i in doubtful]],
            statics=(*statics, *[leaves[i] for i in doubtful]),
            function=self.jitted,
            traced=list(positions),
            donated=donated,
            in_lists=self._in_lists,
            copy=self._copy,
            refs=[positions[i] for i in self.refs],
            written=[positions[i] for i in self.written],
            has_devices=bool(self.refs) and jax.local_device_count() > 1,
        )


def _copy(leaf: Leaf) -> Leaf:
    """A copy of a donated array that also appears at another place."""
    is_array = isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer)
    return jnp.copy(leaf) if is_array else leaf
