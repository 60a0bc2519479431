# SPDX-License-Identifier: Apache-2.0
"""`jax.custom_jvp` and `jax.custom_vjp` for functions of DAGs.

Rules are written per argument: a rule for `f(x, y)` gives a cotangent for `x` and one for `y`. So
identity spans each argument and not all of them, and what `f(w, w)` makes of both is added up by
JAX, for which they are two inputs. What an argument that isn't differentiated holds is constant.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, ParamSpec, TypeVar

import jax.numpy as jnp

from pydag.jaxinterop.messages.attributes import wraps
from pydag.jaxinterop.messages.naming import ARGUMENTS, Source, named
from pydag.jaxinterop.messages.roots import shortened
from pydag.jaxinterop.notices.lost_update import tell_lost
from pydag.jaxinterop.packed.dag import Dag, InnerDag, Outcome, Role, dag_of
from pydag.jaxinterop.packed.derivatives import derivative, without_float0
from pydag.jaxinterop.packed.given import GivenTree
from pydag.jaxinterop.refs.contents import exchange, read
from pydag.jaxinterop.refs.rules import RuleCall
from pydag.jaxinterop.refs.table import NO_REFS, RefTable, TracedRefs
from pydag.jaxinterop.static.untraced import Options
from pydag.structure.text import short_repr
from pydag.typing import Identity

P = ParamSpec("P")
R = TypeVar("R")


GiveRules = Callable[[Any, RuleCall], None] | None
"""Gives rules to JAX's function for a call with refs."""


class Arguments(NamedTuple):
    """How the arguments and the results of a function and of its rules go to JAX.

    The functions that JAX gets own this, and not the wrapper, which owns them. So the arrays that
    the user's function closes over are freed with the last reference to the wrapper.
    """

    options: Options
    nondiff_argnums: tuple[int, ...]

    def pack(self, tree: Any, root: str) -> InnerDag:
        return dag_of(tree, self.options, root, Role.ARGUMENT)

    def outcome(self, tree: Any, table: RefTable = NO_REFS) -> Outcome:
        """The result of the function or of a rule: JAX wants them alike.

        Arrays that are items of a tuple are told apart, as JAX does, for which each is an output.
        """
        return table.hide(dag_of(self.options.separated_items(tree), self.options, cls=Outcome))

    def run(
        self, function: Callable[..., Any], args: Sequence[Any], table: RefTable = NO_REFS
    ) -> Any:
        """What a function, or the forward rule, returns for the arguments as the user has them."""
        skipped = self.nondiff_argnums
        trees = {
            i: given_tree(x, f"args[{i}]", table) for i, x in enumerate(args) if i not in skipped
        }
        result = function(*(trees[i].tree if i in trees else x for i, x in enumerate(args)))
        tell_lost(trees.values(), result, function)
        return result


class Custom(Generic[P, R]):
    """What `custom_jvp` and `custom_vjp` share: the function of Dags, and how it is called."""

    _transformation: Callable[..., Any]
    _left_out: ClassVar[Mapping[str, str]] = {}  # of JAX's methods, and what to do instead

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
        *,
        namespace: str = "",
        identity: Identity = "all",
    ) -> None:
        wraps(fun)(self)
        self.fun = fun
        self._signature = inspect.signature(fun)
        names = list(self._signature.parameters)
        by_name = map(names.index, nondiff_argnames)
        self.nondiff_argnums = tuple(sorted({*nondiff_argnums, *by_name}))
        self._arguments = arguments = Arguments(Options(namespace, identity), self.nondiff_argnums)

        def flat(*args: Any) -> Dag:
            return arguments.outcome(arguments.run(fun, args))

        transformation = type(self)._transformation
        self._jax: Any = transformation(
            named(flat, Source(fun), ARGUMENTS), nondiff_argnums=self.nondiff_argnums
        )

    _give_rules: GiveRules = None
    """None where there are no rules."""
    _defined: tuple[str, Sequence[Any], Mapping[str, Any]] | None = None
    """The method that set the rules, and what it was given."""

    def _made_for_refs(self, flat: Callable[..., Any]) -> Any:
        """What JAX makes of a function that gets a list before the arguments."""
        numbers = tuple(i + 1 for i in self.nondiff_argnums)
        function = named(flat, Source(self.fun), ARGUMENTS)
        return type(self)._transformation(function, nondiff_argnums=numbers)

    def _run_with_refs(self, table: RefTable, given: Sequence[Any], give: GiveRules) -> Any:
        """What a call with refs returns. JAX gets their contents in a list before the arguments."""
        call, arguments, fun = RuleCall(), self._arguments, self.fun

        def flat(refs: list[Any], *args: Any) -> Any:
            def of_refs(refs: list[Any]) -> Outcome:
                inside = RefTable(refs)
                return arguments.outcome(arguments.run(fun, args, inside), inside)

            return call.run(refs, of_refs)

        function = self._made_for_refs(flat)
        if give is not None:
            give(function, call)
        before = read(table.refs)
        outcome, after = function(before, *given)
        for number in sorted(call.written):
            exchange(table.refs[number], before[number], after[number])
        return table.show(outcome).tree

    def __getattr__(self, name: str) -> Any:
        """The flags of JAX's object about its rules, which `defjvp` and `defvjp` set.

        As in JAX, the function itself has the other methods that define rules: `def_vmap`.
        """
        kind = type(self).__name__
        if name in self._left_out:
            raise AttributeError(
                f"jax.{kind} has {name}, and pydag.jaxinterop.{kind} hasn't. {self._left_out[name]}"
            )
        fun = vars(self).get("__wrapped__")
        if name.startswith("def") and hasattr(fun, name):
            return getattr(fun, name)
        if not name.startswith("_"):
            found = getattr(self._jax, name, None)
            if isinstance(found, bool):
                return found
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        bound = self._signature.bind(*args, **kwargs)
        if bound.kwargs:
            raise TypeError(
                "a function with a derivative of its own has positional arguments alone; these "
                f"are given by keyword: {', '.join(bound.kwargs)}"
            )
        bound.apply_defaults()  # but for keyword-only arguments, which the function fills in itself
        arguments, skipped = self._arguments, self.nondiff_argnums
        table = RefTable()
        given = [
            x if i in skipped else table.hide(arguments.pack(x, f"args[{i}]"), adds=True)
            for i, x in enumerate(bound.args)
        ]
        if not table.refs:
            result: R = self._jax(*given).tree
            return result
        shown: R = self._run_with_refs(table, given, self._give_rules)
        return shown


def given_tree(dag: Dag, root: str, table: RefTable = NO_REFS) -> GivenTree:
    """The tree of a Dag, with the refs of a table.

    Python's numbers in it are arrays, as they are where JAX traces.

    JAX may call the function without tracing it. From numbers it would compute numbers, which have
    no identity, and a shared result would come apart.
    """
    leaves = (jnp.asarray(x) if isinstance(x, int | float | complex) else x for x in dag._leaves)
    return GivenTree(table.shown(dag._untraced), leaves, root)


def opened_derivative(dag: Dag, of_refs: Sequence[Any] = ()) -> Any:
    """A tangent or cotangent as a rule gets it: None stands at what has no derivative.

    Args:
        of_refs: The tangents of the contents of refs, if they have any.
    """
    leaves, untraced = without_float0(dag._leaves), dag._untraced
    if of_refs:
        refs = TracedRefs.of(untraced)
        untraced, leaves = refs.untraced, refs.joined(leaves, without_float0(of_refs))
    return derivative(untraced, leaves)


def two(found: Any, rule: Callable[..., Any], form: str, second: str) -> Sequence[Any]:
    """The pair that a rule returned.

    Raises:
        TypeError: It returned something else.
    """
    if isinstance(found, tuple | list) and len(found) == 2:
        return found
    raise TypeError(
        f"the rule {Source(rule).text} must return a pair {form}, the result of the function and "
        f"{second}, but it returned {shortened(short_repr(found))}"
    )
