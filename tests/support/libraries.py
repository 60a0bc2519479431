# SPDX-License-Identifier: Apache-2.0
"""Both libraries, asked the same about trees and specs, and whether the same comes of it."""

import re
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import optree
import specimens as sp
import strategies
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from reference_kinds import FROZEN_DICTS, MAPPINGS
from strategies import Shape, Take

import pydag

ONE, OTHER = "spec functions", "other spec functions"
EVERYWHERE: Any = getattr(optree.registry, "__GLOBAL_NAMESPACE")


class Global(sp.Box):
    """Registered with optree, everywhere."""


class InOne(sp.Box):
    """Registered in one namespace."""


class InOther(sp.Box):
    """Registered in another one."""


class Twice(sp.Box):
    """Registered everywhere, and otherwise in one namespace."""


class Named(sp.Tagged):
    """Has aux_data and entries."""


def register(cls: Any, namespace: Any, step: int = 1) -> None:
    """With optree alone, which is enough."""
    functions: list[Any] = [
        lambda obj: (obj.children[::step], len(obj.children)),
        lambda _, children: cls(*children[::step]),
    ]
    optree.register_pytree_node(cls, *functions, namespace=namespace)


register(Global, EVERYWHERE)
register(InOne, ONE)
register(InOther, OTHER)
register(Twice, EVERYWHERE)
register(Twice, ONE, -1)


def open_named(obj: Any) -> Any:
    """Children, aux_data and entries."""
    return obj.children, obj.tag, [f"part{i}" for i in range(len(obj.children))]


def build_named(tag: Any, children: Any) -> Any:
    """The inverse."""
    return strategies.with_attributes(Named(*children), {"tag": tag})


NAMED: Any = Named
optree.register_pytree_node(NAMED, open_named, build_named, namespace=ONE)


def a_named(draw: DrawFn, take: Take) -> Any:
    """With aux_data that may differ."""
    tag = draw(st.sampled_from([None, "tag", 3]))
    return strategies.with_attributes(Named(*strategies.several(draw, take)), {"tag": tag})


def boxes(cls: Any) -> Shape:
    """Makes nodes of a class."""
    return lambda draw, take: cls(*strategies.several(draw, take))


SHAPES = strategies.BUILTIN + [boxes(cls) for cls in (Global, InOne, InOther, Twice)] + [a_named]
trees = strategies.dags(SHAPES, sharing=False, max_nodes=7)
options = st.fixed_dictionaries(
    {
        "none_is_leaf": st.sampled_from([False, False, False, True]),
        "namespace": st.sampled_from(["", "", ONE, ONE, OTHER]),
    }
)


def renamed(text: str) -> str:
    """What optree says, with the one name that is another one here."""
    text = text.replace("PyTreeSpec", "PyDagSpec").replace("optree.PyDagSpec", "pydag.PyDagSpec")
    # In a message no class's own `__repr__` runs.
    text = re.sub("<(one|two)>", "<specimens.Unsortable>", text)
    text = text.replace("<Color.RED: 1>", "<specimens.Color>")
    return re.sub(" object at 0x[0-9a-f]+", "", text)


def plain(x: Any) -> Any:
    """A result that can be compared: specs by their text, objects by what they hold."""
    if isinstance(x, (optree.PyTreeSpec, pydag.PyDagSpec)):
        return renamed(repr(x))
    if isinstance(x, (list, tuple, deque)):
        return type(x).__name__, getattr(x, "maxlen", None), [plain(y) for y in x]
    if isinstance(x, MAPPINGS):
        factory = getattr(x, "default_factory", None)
        return type(x).__name__, factory, [(repr(key), plain(y)) for key, y in x.items()]
    if isinstance(x, sp.Box):
        return type(x).__name__, plain(vars(x))
    return repr(x)


def outcome(work: Callable[[], Any]) -> Any:
    """What comes of it: a result, or the type and the first line of an error."""
    try:
        return plain(work())
    except Exception as error:
        return type(error), renamed(str(error)).partition("\n")[0]


class Side:
    """One of the two libraries: its specs, its functions on specs, and those on trees.

    The former are attributes, without prefix; `tree` gives one of the latter.
    """

    def __init__(self, library: Any, prefix: str) -> None:
        self.library, self.prefix = library, prefix
        self.structure: Callable[..., Any] = self.tree("structure")

    def tree(self, name: str) -> Callable[..., Any]:
        """`broadcast_prefix` and the like have no prefix."""
        found = getattr(self.library, f"{self.prefix}_{name}", None)
        function: Callable[..., Any] = found or getattr(self.library, name)
        return function

    def __getattr__(self, name: str) -> Any:
        return getattr(self.library, f"{self.prefix}spec_{name}")


THEIRS, OURS = Side(optree, "tree"), Side(pydag, "dag")


def agree(work: Callable[[Side], Any]) -> None:
    """Both libraries give the same result, or raise the same."""
    ours, theirs = outcome(lambda: work(OURS)), outcome(lambda: work(THEIRS))
    if isinstance(ours, tuple) and ours[0] in (ValueError, TypeError) and "..." in ours[1]:
        # What is long is shown without its middle.
        ours, theirs = (ours[0], ours[1][:60]), (theirs[0], theirs[1][:60])
    assert ours == theirs


DICTS: list[Callable[[Any], Any]] = [
    *(dict, OrderedDict, lambda items: defaultdict(list, items)),
    *(lambda items, cls=cls: cls(items) for cls in FROZEN_DICTS),
]


@st.composite
def relatives(draw: DrawFn, tree: Any) -> Any:
    """A tree that looks like another one: parts are grown, cut off, or of another kind."""

    def visit(x: Any) -> Any:
        what = draw(st.sampled_from(["same"] * 12 + ["cut", "grow", "more"]))
        if what == "cut":
            return draw(strategies.leaves)
        if type(x) in (list, tuple, deque):
            return type(x)([*map(visit, x), *[0] * (what == "more")])
        if isinstance(x, MAPPINGS):
            items = [(key, visit(value)) for key, value in x.items()]
            items += [("more", 0)] * (what == "more")
            return draw(st.sampled_from(DICTS))(draw(st.permutations(items)))
        if isinstance(x, sp.Box):
            copy = type(x)(*map(visit, x.children), *[0] * (what == "more"))
            return strategies.with_attributes(copy, vars(x) | {"children": copy.children})
        if type(x) is sp.Point:
            return sp.Point(*map(visit, x))
        return draw(trees) if what == "grow" else x

    return visit(tree)


related = trees.flatmap(lambda tree: st.tuples(st.just(tree), relatives(tree)))
kin = st.tuples(trees, trees) | related | related.map(lambda pair: pair[::-1])
