# SPDX-License-Identifier: Apache-2.0
"""`jax.custom_vjp` for functions of DAGs."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pydag.errors import SharingError
from pydag.jaxinterop.boundary.dag import Dag, InnerDag, rebuilt
from pydag.jaxinterop.boundary.derivatives import without_float0
from pydag.jaxinterop.boundary.lost_update import tell_lost
from pydag.jaxinterop.boundary.match import matched
from pydag.jaxinterop.boundary.outputs import Shell
from pydag.jaxinterop.boundary.places import Places
from pydag.jaxinterop.messages.naming import ARGUMENTS, Source, name_of, named
from pydag.jaxinterop.prefixes.treatments import shortened
from pydag.jaxinterop.refs.access import new_ref
from pydag.jaxinterop.refs.contents import OfContents, OutOfReachError, read, staged_around
from pydag.jaxinterop.refs.table import NO_REFS, RefTable
from pydag.jaxinterop.static.differentiable import is_differentiable
from pydag.jaxinterop.static.leaves import is_traced
from pydag.jaxinterop.static.untraced import Options, Untraced

from .custom import Custom, P, R, opened, opened_derivative, two

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
                least as much; or it is a leaf, where the argument has but one. None stands for
                zero; anything may stand for leaves that JAX can't trace.
            symbolic_zeros, optimize_remat, jax_options: As in JAX.

        Raises:
            SharingError: When differentiated: a cotangent has two objects where there was one, and
                no array stands at several places of the result.
        """
        arguments, name = self._arguments, name_of(self.fun)
        options, skipped = arguments

        def forward(args: Any, table: RefTable) -> tuple[Dag, tuple[Dag, Shell]]:
            result, saved = two(
                arguments.run(fwd, args, table), fwd, "(result, saved)", "what bwd is given of it"
            )
            inputs = [x for i, x in enumerate(args) if i not in skipped]
            inside = tuple(_Input.of(dag, options) for dag in inputs)
            dag = arguments.outcome(result, table)
            places = Places.of(options.separated_items(result), dag.spec, options)
            kept = table.hide(arguments.pack(saved, "saved"))
            return dag, (kept, Shell((inside, places)))

        def backward(
            others: Any, saved: Dag, shell: Shell, cotangent: Dag, table: RefTable
        ) -> tuple[Dag | None, ...]:
            inputs, places = shell.content
            kept = opened(saved, "saved", table)
            found = bwd(*others, kept.tree, _opened_cotangent(cotangent, places))
            tell_lost((kept,), found, bwd)
            if not isinstance(found, tuple | list) or len(found) != len(inputs):
                raise TypeError(
                    f"{name_of(bwd)} must return a tuple with a cotangent for each of "
                    f"{len(inputs)} differentiable arguments, but it returned "
                    f"{shortened(repr(found))}"
                )
            what = f"the cotangent for differentiable argument {{}} of {name}"
            return tuple(
                None if part is None else x.cotangent(part, what.format(i), places is not None)
                for i, (x, part) in enumerate(zip(inputs, found, strict=True))
            )

        self.fwd, self.bwd = fwd, bwd

        def flat_fwd(*args: Any) -> tuple[Dag, tuple[Dag, Shell]]:
            return forward(args, NO_REFS)

        def flat_bwd(*args: Any) -> tuple[Dag | None, ...]:
            *others, (saved, shell), cotangent = args
            return backward(others, saved, shell, cotangent, NO_REFS)

        jax_options |= {"symbolic_zeros": symbolic_zeros, "optimize_remat": optimize_remat}
        self._jax.defvjp(
            named(flat_fwd, Source(fwd), ARGUMENTS),
            named(flat_bwd, Source(bwd), ARGUMENTS),
            **jax_options,
        )

        def give_rules(function: Any, refs: Sequence[Any]) -> Any:
            lent = _LentRules(forward, backward, refs, Source(bwd))
            function.defvjp(
                named(lambda *args: lent.fwd(*args), Source(fwd), ARGUMENTS),
                named(lambda *args: lent.bwd(*args), Source(bwd), ARGUMENTS),
                **jax_options,
            )
            return function

        self._give_rules = give_rules

    _give_rules: Callable[[Any, Sequence[Any]], Any] | None = None

    def _lent_to(self, refs: Sequence[Any]) -> Any:
        return self._lent if self._give_rules is None else self._give_rules(self._make_lent(), refs)


class _LentRules:
    """Rules of a function that is given contents of refs. The one backward may write into refs.

    Args:
        refs: The caller's.
        source: The rule backward.
    """

    def __init__(
        self,
        forward: Callable[..., Any],
        backward: Callable[..., Any],
        refs: Sequence[Any],
        source: Source,
    ) -> None:
        self._forward, self._backward, self._refs, self._source = forward, backward, refs, source
        self._around = staged_around()

    def fwd(self, contents: list[Any], *args: Any) -> Any:
        table = RefTable(list(map(new_ref, contents)))
        dag, kept = self._forward(args, table)
        after = read(table.refs)
        if any(found.is_over for found in self._around):
            self._check_writes(dag, kept, after)
        return (dag, after), (*kept, after)

    def bwd(self, *args: Any) -> tuple[Any, ...]:
        *others, (saved, shell, contents), (cotangent, _) = args
        staged = self._staged(others, saved, shell, cotangent)
        found, _ = staged.alone(contents)
        if staged.written:  # it sees what the refs hold by now
            found, after = staged.alone(read(self._refs))
            for number in staged.written:
                self._refs[number][...] = after[number]
        return None, *found

    def _staged(self, others: Any, saved: Dag, shell: Shell, cotangent: Dag) -> OfContents:
        def with_refs(inside: list[Any]) -> tuple[Dag | None, ...]:
            return self._backward(others, saved, shell, cotangent, RefTable(inside))  # type: ignore[no-any-return]  # mypy sees a Callable

        return OfContents(with_refs)

    def _check_writes(self, dag: Dag, kept: tuple[Dag, Shell], contents: list[Any]) -> None:
        """Checks that the rule backward doesn't write: it will run when the refs are gone.

        Raises:
            OutOfReachError: It does.
        """
        cotangent = rebuilt(dag._untraced, map(_zeros, dag._leaves), type(dag))
        staged = self._staged((), *kept, cotangent)
        with contextlib.suppress(Exception):  # what it raises, it raises when it runs
            jax.eval_shape(staged.alone, contents)
        if staged.written:
            raise OutOfReachError(
                f"the rule {self._source.text} writes into a ref, and runs when the ref is out of "
                "reach: JAX differentiates scan, checkpoint, cond and loops as a whole\n"
                "  Call the function outside of them; or give it another argument, zeros, and let "
                "the rule return what it would write as the cotangent of that."
            )


def _zeros(leaf: Any) -> Any:
    if is_differentiable(leaf):
        return jnp.zeros_like(leaf)
    return np.zeros(jnp.shape(leaf), jax.dtypes.float0)


class _Input(NamedTuple):
    """What a backward rule's cotangent for an argument is matched with."""

    untraced: Untraced
    places: Places | None

    @classmethod
    def of(cls, dag: InnerDag, options: Options) -> "_Input":
        return cls(dag._untraced, Places.of(dag.tree, dag.spec, options))

    def cotangent(self, found: Any, what: str, adds: bool) -> Dag:
        """The Dag of a cotangent that a rule gave.

        Args:
            adds: Whether different parts for one array are added up.
        """
        return rebuilt(self.untraced, self._leaves(found, what, adds), InnerDag)

    def _leaves(self, found: Any, what: str, adds: bool) -> list[Any]:
        try:
            return matched(self.untraced, found, what, "cotangent")
        except SharingError:
            if not adds or self.places is None:
                raise
            return self.places.sums(found, self.untraced)
        except TypeError:
            if len(self.untraced.traced_positions()) == 1 and is_traced(found):
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
