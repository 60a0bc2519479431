# SPDX-License-Identifier: Apache-2.0
"""`jax.custom_vjp` for functions of DAGs."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from pydag.errors import SharingError
from pydag.jaxinterop.boundary.match import matched
from pydag.jaxinterop.boundary.places import Places
from pydag.jaxinterop.messages.naming import ARGUMENTS, Source, name_of, named
from pydag.jaxinterop.messages.roots import shortened
from pydag.jaxinterop.notices.lost_update import tell_lost
from pydag.jaxinterop.packed.dag import Dag, InnerDag, rebuilt
from pydag.jaxinterop.packed.derivatives import without_float0
from pydag.jaxinterop.packed.packed import Packed
from pydag.jaxinterop.refs.ref_calls import ask_for_refs
from pydag.jaxinterop.refs.table import NO_REFS, RefTable, TracedRefs
from pydag.jaxinterop.static.differentiable import is_differentiable, is_ref, shape_of
from pydag.jaxinterop.static.leaves import is_traced
from pydag.jaxinterop.static.untraced import Untraced
from pydag.structure.text import short_repr

from .custom import Custom, GiveRules, P, R, given_tree, opened_derivative, two
from .custom_vjp_refs import Cotangents, RefRules

_REMAT = "Take defvjp, and pydag.jaxinterop.checkpoint around the call."


class custom_vjp(Custom[P, R]):  # noqa: N801 (JAX's name)
    """A function of DAGs with its own derivative, backward; as `jax.custom_vjp`.

    Identity spans each argument: an object in two arguments is two inputs, whose cotangents JAX
    adds up. Inside of one argument, what is one object is one in the rules, and has one cotangent:
    the whole, at each of its places. So a rule sums over the places of an argument itself. Parts
    that differ are refused; one object that was meant as two equal parts can't be told from the
    whole.

    An array at several places of the result has a cotangent for each of them. Items of a tuple are
    outputs of their own, as in JAX. In a list, a dict or a module the array stays one object, and
    what all its uses contribute is the sum of its cotangents: the first has the whole, the others
    are zero. A rule that adds them counts each use once. Where a rule then gives an array of an
    argument different cotangents at its places, those are added up, too. A node of the result is
    one, wherever it stands.

    Args:
        fun: The function, of positional arguments; others keep their defaults.
        nondiff_argnums, nondiff_argnames: Arguments that are handed on as they are.
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.

    >>> @custom_vjp
    ... def f(p):
    ...     return p["a"] * p["b"]
    >>> def forward(p):
    ...     return f(p), p
    >>> def backward(p, cotangent):
    ...     both = cotangent * (p["a"] + p["b"])
    ...     return ({"a": both, "b": both},)
    >>> f.defvjp(forward, backward)
    >>> float(jax.grad(lambda w: f({"a": w, "b": w}))(jnp.float32(3.0)))
    6.0
    """

    _transformation = jax.custom_vjp
    _left_out: ClassVar = {
        "defvjp_with_logs": "Let the rule return what it logs as a part of the result.",
        "defvjp_with_accums": "Take defvjp, whose rule returns the cotangents.",
        "defremat": _REMAT,
        "defremat_with_logs": _REMAT,
        "remat_rules": _REMAT,
    }
    fwd: Callable[..., Any] | None = None
    """The rule forward."""
    bwd: Callable[..., Any] | None = None
    """The rule backward."""

    def defvjp(
        self,
        fwd: Callable[..., tuple[R, Any]],
        bwd: Callable[..., tuple[Any, ...] | list[Any]],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        **jax_options: Any,
    ) -> None:
        """Set the rules.

        Args:
            fwd: `fwd(*args)` returns `(result, saved)`.
            bwd: `bwd(*nondiff_args, saved, cotangent)` returns a tuple or list with a cotangent for
                each differentiable argument. Each is structured as its argument is, and shares at
                least as much; or it is a leaf, where the argument has but one. For a ref it has the
                cotangent of the content, an array. None stands for zero; anything may stand for
                leaves that JAX can't trace.
            symbolic_zeros, optimize_remat, jax_options: As in JAX.

        Raises:
            SharingError: When differentiated: a cotangent has two objects where there was one, and
                no array stands at several places of the result.
        """
        arguments, name = self._arguments, name_of(self.fun)
        skipped = arguments.nondiff_argnums

        def forward(args: Any, table: RefTable) -> tuple[Dag, tuple[Dag, Packed]]:
            result, saved = two(
                arguments.run(fwd, args, table), fwd, "(result, saved)", "what bwd is given of it"
            )
            inputs = [x for i, x in enumerate(args) if i not in skipped]
            inside = tuple(map(_Input.of, inputs))
            dag = arguments.outcome(result, table)
            places = Places.of(dag.spec)
            kept = table.hide(arguments.pack(saved, "saved"))
            return dag, (kept, Packed((), (inside, places)))

        def backward(
            others: Any, saved: Dag, shell: Packed, cotangent: Dag, table: RefTable
        ) -> Cotangents:
            inputs, places = shell.content
            kept = given_tree(saved, "saved", table)
            found = bwd(*others, kept.tree, _opened_cotangent(cotangent, places))
            tell_lost((kept,), found, bwd)
            if not isinstance(found, tuple | list) or len(found) != len(inputs):
                raise TypeError(
                    f"{name_of(bwd)} must return a tuple with a cotangent for each of "
                    f"{len(inputs)} differentiable arguments, but it returned "
                    f"{shortened(repr(found))}"
                )
            what = f"the cotangent for differentiable argument {{}} of {name}"
            of_refs: list[Any] = [None] * len(table.refs)
            return [
                None
                if part is None
                else x.cotangent(part, what.format(i), places is not None, table, of_refs)
                for i, (x, part) in enumerate(zip(inputs, found, strict=True))
            ], of_refs

        self.fwd, self.bwd = fwd, bwd

        def flat_fwd(*args: Any) -> tuple[Dag, tuple[Dag, Packed]]:
            return forward(args, NO_REFS)

        def flat_bwd(*args: Any) -> tuple[Dag | None, ...]:
            *others, (saved, shell), cotangent = args
            return tuple(backward(others, saved, shell, cotangent, NO_REFS)[0])

        jax_options |= {"symbolic_zeros": symbolic_zeros, "optimize_remat": optimize_remat}
        self._jax.defvjp(
            named(flat_fwd, Source(fwd), ARGUMENTS),
            named(flat_bwd, Source(bwd), ARGUMENTS),
            **jax_options,
        )

        self._ref_rules = RefRules(forward, backward, Source(fwd), Source(bwd), jax_options)
        self._give_rules = self._ref_rules.give
        self._defined = "defvjp", (fwd, bwd), jax_options

    _ref_rules: RefRules | None = None

    def _run_with_refs(self, table: RefTable, given: Sequence[Any], give: GiveRules) -> Any:
        rules, skipped = self._ref_rules, self.nondiff_argnums
        if rules is None or not rules.write_backward(table.refs, given, skipped):
            return super()._run_with_refs(table, given, give)
        error = ask_for_refs()
        if error is not None:
            return super()._run_with_refs(
                table, given, lambda function, call: rules.give(function, call, error)
            )
        arguments, fun = self._arguments, self.fun

        def flat(refs: list[Any], *args: Any) -> Dag:
            inside = RefTable(refs)
            return arguments.outcome(arguments.run(fun, args, inside), inside)

        function = self._made_for_refs(flat)
        rules.give_to_refs(function)
        return table.show(function(table.refs, *given)).tree


class _Input(NamedTuple):
    """What a backward rule's cotangent for an argument is matched with."""

    untraced: Untraced
    refs: TracedRefs
    places: Places | None

    @classmethod
    def of(cls, dag: InnerDag) -> "_Input":
        untraced = dag._untraced
        return cls(untraced, TracedRefs.of(untraced), Places.of(dag.spec))

    def cotangent(
        self, found: Any, what: str, adds: bool, table: RefTable, of_refs: list[Any]
    ) -> Dag:
        """The Dag of a cotangent that a rule gave.

        Args:
            adds: Whether different parts for one array are added up.
            of_refs: The cotangents of the contents of refs, by number. Those for refs that are in
                the argument are added.
        """
        leaves = self._leaves(found, what, adds)
        rest = []
        for i, (number, part) in enumerate(zip(self.refs.numbers, leaves, strict=True)):
            if number is None:
                rest.append(part)
            elif part is not None and is_differentiable(shape := shape_of(table.refs[number])):
                self._check_ref(i, part, shape, what)
                known = of_refs[number]
                of_refs[number] = part if known is None else known + part
        return rebuilt(self.untraced, rest, InnerDag)

    def _check_ref(self, i: int, part: Any, shape: Any, what: str) -> None:
        """Checks that what a rule gave for a ref is a cotangent of its content."""
        if is_ref(part) or not is_traced(part) or jnp.shape(part) != shape.shape:
            given = "the ref itself" if is_ref(part) else shortened(short_repr(part))
            raise TypeError(
                f"{self.refs.place(i, 'cotangent')} in {what} stands for a ref, and must be None "
                f"or an array like its content, {shape.dtype}{list(shape.shape)}, but is {given}"
            )

    def _leaves(self, found: Any, what: str, adds: bool) -> list[Any]:
        untraced = self.refs.untraced
        try:
            return matched(untraced, found, what, "cotangent")
        except SharingError:
            if not adds or self.places is None:
                raise
            return self.places.sums(found, untraced)
        except TypeError:
            if len(untraced.traced_positions()) == 1 and is_traced(found):
                return [found]  # as in JAX, a leaf for a node with one leaf
            raise


def _opened_cotangent(dag: Dag, places: Places | None) -> Any:
    """The cotangent of a result, as the rule gets it."""
    if places is None:
        return opened_derivative(dag)
    untraced = dag._untraced.without_statics()
    return places.build(untraced.all_leaves(without_float0(dag._leaves)), _zero)


def _zero(cotangent: Any) -> Any:
    is_zero = cotangent is None or isinstance(cotangent, jax.custom_derivatives.SymbolicZero)
    return cotangent if is_zero else jnp.zeros_like(cotangent)
