# SPDX-License-Identifier: Apache-2.0
"""Operations on trees against the reference: the same results, calls and refusals."""

import contextlib
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import reference as ref
import reference_deref
import specimens as sp
import trees
from agreement import known
from changes import change_some
from rounds import Round, agree, expect, same, scenario

import pydag

MOST_PATHS = 3000  # in a tree that the reference is asked about

Options = dict[str, Any]
Operation = Callable[[Round, Any, Options], None]


def is_small(tree: Any) -> bool:
    """Whether a tree has few paths, or none at all (a cycle)."""
    try:
        return pydag.dag_structure(tree, namespace=sp.NAMESPACE).num_paths < MOST_PATHS
    except pydag.CycleError:
        return True


def row(*arguments: Any) -> list[Any]:
    """A function to map with, whose results show what it was given."""
    sp.EVENTS.append(("f", *arguments))
    return list(arguments)


def flatten(this: Round, tree: Any, options: Options) -> None:
    """Leaves, paths, text and what is asked, whichever function flattens."""
    asked = this.predicate() if this.often(0.4) else None
    again = asked.again() if asked else None

    def theirs() -> Any:
        leaves, spec = ref.flatten(tree, asked, **known(options))
        return leaves, ref.paths(spec), ref.text(spec)

    def with_path() -> Any:
        paths, leaves, spec = pydag.dag_flatten_with_path(tree, again, **options)
        return leaves, paths, repr(spec)

    def plain() -> Any:
        leaves, spec = pydag.dag_flatten(tree, again, **options)
        return leaves, spec.paths(), repr(spec)

    def with_accessor() -> Any:
        accessors, leaves, spec = pydag.dag_flatten_with_accessor(tree, again, **options)
        return leaves, [accessor.path for accessor in accessors], repr(spec)

    agree("flatten", this.rng.choice([with_path, plain, with_accessor]), theirs)
    if asked and again:
        same("flatten: asked", again.asked, asked.asked)


def unflatten(this: Round, tree: Any, options: Options) -> None:
    """The same object graph from the same leaves, twice, and too many or too few refused."""

    def theirs() -> Any:
        leaves, spec = ref.flatten(tree, **known(options))
        return [ref.unflatten(spec, leaves) for _ in range(2)]

    def ours() -> Any:
        leaves, spec = pydag.dag_flatten(tree, **options)
        return [pydag.dag_unflatten(spec, iter(leaves)) for _ in range(2)]

    if agree("unflatten", ours, theirs) is not None:
        leaves, spec = pydag.dag_flatten(tree, **options)
        for wrong in ([*leaves, 0], leaves[1:] or [1, 2]):
            try:
                spec.unflatten(wrong)
            except ValueError:
                continue
            expect("unflatten: a wrong number of leaves is taken", False)


def copy(this: Round, tree: Any, options: Options) -> None:
    """A copy is what the leaves give when they are put together again."""
    agree(
        "copy",
        lambda: pydag.dag_copy(tree, **options),
        lambda: ref.map_(lambda x: x, tree, **known(options)),
    )


def map_(this: Round, tree: Any, options: Options) -> None:
    """The function is called with the same rows, and what it gives stands at the same places."""

    def rest(spec: ref.Spec) -> Any:
        numbers = itertools.count()
        rests: list[Callable[[], Any]] = [
            lambda: ref.unfold(spec, lambda index: (index, 1.5)),
            lambda: ref.unfold(spec, lambda _: next(numbers)),
            lambda: ref.unflatten(spec, [sp.Opaque() for _ in range(spec.num_leaves)]),
            lambda: tree,
        ]
        return this.rng.choice(rests)()

    try:
        spec = ref.flatten(tree, **known(options))[1]
        rests = [rest(spec) for _ in range(this.rng.randrange(3))]
    except (ref.CycleError, TypeError, ValueError):
        rests = []
    path = this.often(0.3)
    ours = pydag.dag_map_with_path if path else pydag.dag_map
    registry = sp.REGISTRIES[options["namespace"]]
    agree(
        "map",
        partial(ours, row, tree, *rests, **options),
        partial(ref.map_, row, tree, *rests, path=path, **options, registry=registry),
        calls=not rests,
    )


def match(this: Round, tree: Any, options: Options) -> None:
    """A tree that was changed fits or not, and if so the same parts stand at the leaves."""
    try:
        (leaves, expected), spec = (
            ref.flatten(tree, **known(options)),
            pydag.dag_structure(tree, **options),
        )
        other = ref.unflatten(expected, leaves) if this.often(0.5) else this.tree()
    except (ref.CycleError, ValueError, TypeError):
        return
    change_some(this.rng, other, this.tree() if this.often(0.1) else sp.Opaque())
    if not is_acyclic(other):  # too much for whoever compares what comes of it
        with contextlib.suppress(ValueError):
            spec.flatten_up_to(other)
        return

    def sorted_errors(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except ValueError as error:  # which of two things is found first is nobody's business
            raise ValueError from error

    agree(
        "flatten_up_to",
        lambda: sorted_errors(lambda: spec.flatten_up_to(other)),
        lambda: sorted_errors(lambda: ref.flatten_up_to(expected, other)),
        calls=False,
    )


def marks(this: Round, tree: Any, options: Options) -> None:
    """Sharing written into the tree, and read back."""
    expected: list[Any] = []

    def theirs() -> Any:
        expected.append(reference_deref.deref(tree, **known(options)))
        return expected[0]

    got = agree("deref", lambda: pydag.deref(tree, **options), theirs)
    if got is not None:
        agree(
            "reref",
            lambda: pydag.reref(got, **options),
            lambda: reference_deref.reref(expected[0], **known(options)),
        )


def is_acyclic(tree: Any) -> bool:
    """Whether a tree can be flattened."""
    try:
        pydag.dag_leaves(tree, namespace=sp.NAMESPACE)
    except pydag.CycleError:
        return False
    return True


OPERATIONS: list[Operation] = [flatten, flatten, unflatten, copy, map_, match, marks]


@scenario(weight=12)
def trees_agree(this: Round) -> None:
    """A tree that is changed between operations, each of which agrees with the reference."""
    tree = this.tree(shapes=this.rng.choice([trees.ALL, trees.KNOWN, trees.BUILTIN]))
    options = this.options()
    for _ in range(this.rng.randrange(1, 5)):
        if not is_small(tree):
            return
        this.rng.choice(OPERATIONS)(this, tree, options)
        if this.often(0.6):
            change_some(this.rng, tree, this.grower().leaf())
        if this.often(0.2):
            options = this.options()
