# SPDX-License-Identifier: Apache-2.0
"""Structures that are written and read, transposed; trees that are tied and updated: by laws."""

import copy
import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import reference as ref
import specimens as sp
import trees
from agree_trees import is_acyclic, is_small
from agreement import known
from changes import change_some
from rounds import ALLOWED, Round, expect, same, scenario
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
    *(written, transposed, paths, updated),
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
