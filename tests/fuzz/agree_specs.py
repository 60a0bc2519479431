# SPDX-License-Identifier: Apache-2.0
"""Operations on structures, on prefixes and on paths: against the reference, and by their laws."""

import copy
import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import reference as ref
import reference_broadcast
import reference_specs as rules
import specimens as sp
import trees
from agree_trees import is_acyclic, is_small
from agreement import known
from changes import change_some
from reference_kinds import Shape
from rounds import ALLOWED, Round, agree, expect, same, scenario
from strategies import KEYS

import pydag

Options = dict[str, Any]
Both = tuple[pydag.PyDagSpec, ref.Spec]
EQUAL = [key for key in KEYS if not isinstance(key, sp.Unsortable)]
"""Keys that are equal to their pickles."""
KEPT: list[tuple[pydag.PyDagSpec, str]] = []
"""Structures of earlier rounds, with their texts."""


def text(spec: Any) -> str:
    """Of a spec, or of a reference's, without the namespace, which tells no structures apart."""
    written = ref.text(spec) if isinstance(spec, ref.Spec) else repr(spec)
    return written.replace(f", namespace={sp.NAMESPACE!r})", ")")


def both(tree: Any, options: Options) -> Both:
    """The structure of a tree, and the reference's."""
    return pydag.dag_structure(tree, **options), ref.flatten(tree, **known(options))[1]


def relative(this: Round, tree: Any, options: Options) -> Any:
    """A DAG that looks like another one: parts are grown, cut off, untied or of another kind."""
    kind = this.rng.randrange(4)
    if kind == 0:
        return this.tree(shapes=trees.KNOWN, keys=EQUAL)
    if kind == 1:
        spec = ref.flatten(tree, **known(options))[1]
        return ref.unfold(spec, lambda index: [index] if this.often(0.1) else sp.Opaque())
    other = _cut(this, tree, {})
    if kind == 3:
        change_some(this.rng, other, [sp.Opaque()])
    return other


def _cut(this: Round, obj: Any, memo: dict[int, Any]) -> Any:
    if id(obj) in memo and this.often(0.8):
        return memo[id(obj)][1]
    if this.often(0.1):
        new: Any = this.rng.choice([sp.Opaque(), 1, (1, (2,))])
    elif type(obj) in (list, tuple):
        new = type(obj)([_cut(this, below, memo) for below in obj])
    elif type(obj) in (dict, OrderedDict):
        made = this.rng.choice([dict, OrderedDict])
        new = made((key, _cut(this, below, memo)) for key, below in obj.items())
    elif type(obj) is sp.Module:
        new = sp.Module(**{key: _cut(this, below, memo) for key, below in vars(obj).items()})
    else:
        new = obj
    memo[id(obj)] = obj, new
    return new


def parts(this: Round, tree: Any, other: Any, options: Options) -> None:
    """Children, entries and the one-level structure."""
    spec, expected = both(tree, options)
    found = spec.children()
    same("children", list(map(text, found)), list(map(text, rules.children(expected))))
    same("child", [spec.child(i) == x for i, x in enumerate(found)], [True] * len(found))
    level, one_level = rules.one_level(expected), spec.one_level()
    expect("one_level: of what", (level is None) == (one_level is None))
    if level is not None:
        same("one_level", text(one_level), text(level))
    expect("is_one_level", spec.is_one_level() == rules.is_one_level(expected))


def compose(this: Round, tree: Any, other: Any, options: Options) -> None:
    """One structure in the place of another one's leaves."""
    (x, outer), (y, inner) = both(tree, options), both(other, options)
    if outer.num_leaves * len(ref.distinct(inner.root)) < 2000:
        agree(
            "compose",
            lambda: text(x.compose(y)),
            lambda: text(rules.compose(outer, inner)),
            calls=False,
        )


def transform(this: Round, tree: Any, other: Any, options: Options) -> None:
    """Lists become tuples, leaves another structure."""
    (x, before), (y, inner) = both(tree, options), both(other, options)
    kept = {key: options[key] for key in ("none_is_leaf", "namespace")}

    def f_node(spec: pydag.PyDagSpec) -> pydag.PyDagSpec:
        return pydag.dagspec_tuple(spec.children(), **kept) if spec.type is list else spec

    def head(shape: Shape) -> Shape:
        return Shape("tuple", tuple, shape.entries) if shape.cls is list else shape

    agree(
        "transform",
        lambda: text(x.transform(f_node, lambda _: y)),
        lambda: text(rules.transform(before, head, inner)),
        calls=False,
    )


def order(this: Round, tree: Any, other: Any, options: Options) -> None:
    """What is a prefix of what, what is equal, and that it is explained."""
    (x, first), (y, second) = both(tree, options), both(other, options)
    mine = x <= y, x < y, y <= x, y < x
    theirs = [
        rules.is_prefix(a, b, strict)
        for a, b in ((first, second), (second, first))
        for strict in (False, True)
    ]
    same("prefix", list(mine), theirs)
    equal = x == y
    expect("hash: equal structures have two", not equal or hash(x) == hash(y))
    expect("explain: finds a difference of equal structures", bool(pydag.explain(x, y)) != equal)


def suffix(this: Round, tree: Any, other: Any, options: Options) -> None:
    """The common structure of two."""
    (x, first), (y, second) = both(tree, options), both(other, options)
    try:
        expected = text(rules.common_suffix(first, second))
    except rules.RefusedError as refused:
        try:
            x.broadcast_to_common_suffix(y)
        except ValueError as error:
            told = "sharing" if isinstance(error, pydag.SharingError) else "fit"
            expect(f"suffix: refused by {told}", told in refused.problems)
            return
        expect("suffix: the core refuses nothing", False)
        return
    same("suffix", text(x.broadcast_to_common_suffix(y)), expected)


def prefix(this: Round, tree: Any, other: Any, options: Options) -> None:
    """What a prefix gives to each leaf, or the sort of its errors."""
    (_, small), (_, full) = both(other, options), both(tree, options)
    errors = pydag.prefix_errors(other, tree, **options)

    def theirs() -> Any:
        return reference_broadcast.broadcast_prefix(small, full)[1]

    found = agree(
        "prefix", lambda: pydag.broadcast_prefix(other, tree, **options), theirs, calls=False
    )
    expect("prefix_errors: not what broadcast_prefix does", (found is None) == bool(errors))


def walk(this: Round, tree: Any, other: Any, options: Options) -> None:
    """`walk` gives the same data in the same order."""
    spec, expected = both(tree, options)
    leaves = list(range(len(spec)))
    agree(
        "walk",
        lambda: spec.walk(leaves, lambda cls, data, below: [cls, data, *below], lambda x: [x]),
        lambda: rules.walk(
            expected,
            leaves,
            lambda shape, below: [shape.cls, rules.node_data(shape), *below],
            lambda x: [x],
        ),
        calls=False,
    )


def written(this: Round, tree: Any, other: Any, options: Options) -> None:
    """Pickled, written as JSON and copied, a structure comes back equal."""
    spec = pydag.dag_structure(tree, **options)
    for how, back in (
        ("copy", copy.copy),
        ("pickle", lambda x: pickle.loads(pickle.dumps(x, this.rng.randrange(2, 6)))),
        ("json", lambda x: pydag.PyDagSpec.from_json(x.to_json())),
    ):
        try:
            again = back(spec)
        except (TypeError, AttributeError, pickle.PicklingError):
            continue  # a key or aux_data that can't be written
        except ValueError:
            expect(f"{how}: refused", how == "json")  # a class whose name says nothing
            continue
        if sp.Color not in _classes(tree):
            expect(f"{how}: comes back unequal", again == spec)
        expect(f"{how}: has another text", text(again) == text(spec))


def _classes(tree: Any) -> set[type]:
    return {type(leaf) for leaf in pydag.dag_leaves(tree)}


def transposed(this: Round, tree: Any, other: Any, options: Options) -> None:
    """Transposed there and back, the same leaves stand where they stood."""
    outer = pydag.dag_structure(tree, **options)
    inner = pydag.dag_structure(this.rng.choice([[1], (2, [3])]), **options)
    if not 0 < len(outer) < 200:
        return
    built = outer.compose(inner).unflatten([sp.Opaque() for _ in range(len(outer) * len(inner))])
    there = pydag.dag_transpose(outer, inner, built)
    same("transpose", pydag.dag_transpose(inner, outer, there), built)


def paths(this: Round, tree: Any, other: Any, options: Options) -> None:
    """tie and untie at paths that exist, retie, replace and update, as far as laws tell."""
    found = pydag.dag_paths(tree, **options)
    if len(found) < 2:
        return
    one, two = this.rng.sample(found, 2)
    try:
        tied = pydag.tie(tree, one, two, **options)
        apart = pydag.untie(tree, one, two, **options)
    except ALLOWED as error:
        expect(f"tie: {error!r}", not isinstance(error, IndexError))
        return
    every = pydag.dag_paths(tied, all_paths=True, **options)
    at = {
        path: leaf
        for leaf, places in zip(pydag.dag_leaves(tied, **options), every, strict=True)
        for path in places
    }
    expect("tie: two objects", at[one] is at[two])
    expect("untie: lost leaves", len(pydag.dag_leaves(apart, **options)) >= len(found))
    leaf = this.rng.choice(pydag.dag_leaves(tree, **options))
    new = sp.Opaque()
    try:
        replaced = pydag.dag_replace(tree, leaf, new, **options)
    except ValueError:
        return  # a value
    expect("replace: new leaf", any(x is new for x in pydag.dag_leaves(replaced, **options)))
    expect("replace: old leaf", not any(x is leaf for x in pydag.dag_leaves(replaced, **options)))
    spec = pydag.dag_structure(tree, **options)
    if not options["none_is_leaf"] and options["identity"] == "all":
        try:
            retied = pydag.retie(spec, ref.unfold(both(tree, options)[1], lambda index: index))
        except ALLOWED:
            return
        kept = {"namespace": options["namespace"], "identity": "nodes"}  # numbers have no identity
        texts = [text(pydag.dag_structure(x, **kept)) for x in (retied, tree)]
        same("retie", texts[:1], texts[1:])


def updated(this: Round, tree: Any, other: Any, options: Options) -> None:
    """After an update the target has the source's leaves; after a refusal it is as it was."""
    leaves, spec = pydag.dag_flatten(tree, **options)
    new: list[Any] = [sp.Opaque() for _ in leaves]
    source = spec.unflatten(new) if this.often(0.7) else other
    try:
        pydag.dag_update(tree, source, **options)
    except ALLOWED:
        now, again = pydag.dag_flatten(tree, **options)
        same("update: refused, yet leaves changed", now, leaves)
        expect("update: refused, yet the structure changed", again == spec)
        return
    # One object of a class without identity may stand where the source has two: the last one wins.
    if source is not other and "Loose" not in repr(spec):
        same("update", pydag.dag_leaves(tree, **options), new)


OPERATIONS: list[Callable[[Round, Any, Any, Options], None]] = [
    *(parts, compose, transform, order, suffix, prefix, walk, written, transposed, paths, updated),
]


@scenario(weight=8)
def specs_agree(this: Round) -> None:
    """Structures of two trees, mostly alike, and what is done with them."""
    tree, options = this.tree(shapes=trees.KNOWN, keys=EQUAL, large=False), this.options()
    other = relative(this, tree, options)
    this.built.append(other)
    for operation in this.rng.sample(OPERATIONS, 2):
        if is_acyclic([tree, other]) and is_small([tree, other]):
            one, two = this.rng.sample([tree, other], 2)
            operation(this, one, two, options)


@scenario(weight=2)
def kept_structures(this: Round) -> None:
    """Structures of earlier rounds still say what they said, and build what they built."""
    if len(KEPT) < 50:
        spec = pydag.dag_structure(this.tree(shapes=trees.BUILTIN + trees.CUSTOM), **this.options())
        KEPT.append((spec, repr(spec)))
        return
    spec, said = KEPT.pop(this.rng.randrange(len(KEPT)))
    same("kept", repr(spec), said)
    leaves = [sp.Opaque() for _ in range(len(spec))]
    built = spec.unflatten(leaves)
    same("kept: flattened up to", spec.flatten_up_to(built), leaves)
