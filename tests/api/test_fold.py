# SPDX-License-Identifier: Apache-2.0
"""`dag_fold`: something computed for each object, from what it is for the object's children."""

import dataclasses
import functools
import gc
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import reference_fold as ref
import specimens as sp
import strategies
from agreement import Options, known, numbering, outcome
from hypothesis import given
from hypothesis import strategies as st
from isomorphism import difference
from operations import run_apart
from registering import fresh, register
from strategies import Predicate, thorough

import pydag


def size(node: Any, below: tuple[int, ...]) -> int:
    return 1 + sum(below)


@thorough
@given(strategies.dags() | strategies.ladders(), strategies.predicates, strategies.options)
def test_agrees(dag: Any, predicate: Predicate, options: Options) -> None:
    """The same calls in the same order, the same objects in them, and the same result."""
    expected, events, _ = outcome(
        lambda: ref.fold(numbering(), dag, is_leaf=predicate, **known(options))
    )
    again = predicate.again()
    got, calls, error = outcome(lambda: pydag.dag_fold(numbering(), dag, again, **options))
    assert (got, error) == (expected, "")
    assert difference(calls, events) == ""
    assert difference(again.asked, predicate.asked) == ""


CLASSES = [object, list, tuple, dict, OrderedDict, sp.Box, sp.Tagged, sp.Module, sp.Slotted, int]


@thorough
@given(strategies.dags(), st.sets(st.sampled_from(CLASSES)), strategies.options)
def test_agrees_by_class(dag: Any, classes: set[type], options: Options) -> None:
    """The same function is found along the MRO, or none."""
    by_class = {cls: lambda node, children, cls=cls: (cls.__name__, children) for cls in classes}
    expected, _, refusal = outcome(lambda: ref.fold(by_class, dag, **known(options)))
    got, _, error = outcome(lambda: pydag.dag_fold(by_class, dag, **options))
    assert (got, error) == (expected, refusal)


# Contexts that grow, that meet again, and that are equal without being the same.
DOWN: dict[str, Callable[[Any, Any], Any]] = {
    "depth": lambda node, context: context + 1,
    "parity": lambda node, context: 1 - context,
    "type": lambda node, context: True if type(context) is int else 1,
    "class": lambda node, context: type(node).__name__,
    "none": lambda node, context: None,
}


@thorough
@given(strategies.dags(), st.sampled_from(list(DOWN)), strategies.options)
def test_agrees_with_contexts(dag: Any, down: str, options: Options) -> None:
    """The same calls with the same contexts: each object once for each of them."""

    def going_down(node: Any, context: Any) -> Any:
        sp.EVENTS.append(("down", node, context))
        return DOWN[down](node, context)

    expected, events, _ = outcome(
        lambda: ref.fold_with_context(numbering(), dag, going_down, 1, **known(options))
    )
    got, calls, error = outcome(
        lambda: pydag.dag_fold(numbering(), dag, down=going_down, init=1, **options)
    )
    assert (got, error) == (expected, "")
    assert difference(calls, events) == ""


# --- functions by class ---


def test_missing_function() -> None:
    """A class without a function is named, with its path and with the classes that have one."""
    by_class = {dict: size, sp.Box: size}
    with pytest.raises(TypeError) as info:
        pydag.dag_fold(by_class, {"a": [sp.Opaque()]}, is_leaf=lambda x: isinstance(x, list))
    assert str(info.value) == (
        "there is no function for the class list\n  classes that have one: dict, Box\n"
        "  Add the class, one that it derives from, or `object`, which stands for all others.\n"
        "  at tree['a']"
    )
    with pytest.raises(TypeError, match="classes that have one: none"):
        pydag.dag_fold({}, 1)
    many = {type(f"Class{'x' * 200}{i}", (), {}): size for i in range(1000)}
    with pytest.raises(TypeError, match="and 980 more") as long:
        pydag.dag_fold(many, 1)
    assert len(str(long.value)) < 2000


@pytest.mark.parametrize(
    ("functions", "complaint"),
    [
        (3, "NAME must be a function, or a mapping from classes to functions, got 3"),
        ([size], "NAME must be a function, or a mapping"),
        ({"list": size}, "the keys of NAME must be classes, got 'list'"),
        ({list: "size"}, "NAME has for the class <class 'list'> no function, but 'size'"),
    ],
)
def test_functions_that_are_none(functions: Any, complaint: str) -> None:
    """What is neither a function nor a mapping from classes to functions is refused at once."""
    for operation in (pydag.dag_fold, pydag.dag_rewrite):
        with pytest.raises(TypeError, match=complaint.replace("NAME", "f")):
            operation(functions, [1])
    with pytest.raises(TypeError, match=complaint.replace("NAME", "down")):
        pydag.dag_fold(lambda *_: 0, [1], down=functions)


# --- the order of the children ---


def parts(node: Any, children: Any, *context: Any) -> Any:
    """The children, in the order in which they come; of a leaf the leaf."""
    return children or node


class Let:
    """Meta fields and parameters that aren't kept are left out."""

    def __init__(self, name: str, value: Any, body: Any, *, verbose: bool = False) -> None:
        self.body, self.value, self.name = body, value, name


class SlottedRatio:
    """Its slots are in another order than its parameters."""

    __slots__ = ("bottom", "top")

    def __init__(self, top: Any, bottom: Any) -> None:
        self.top, self.bottom = top, bottom


class Derived(SlottedRatio):
    """Inherits the parameters."""


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Decorated:
    """The parameters of what is decorated count."""

    @logged
    def __init__(self, z: Any, a: Any) -> None:
        self.a, self.z = a, z


class Call:
    """The rest of the arguments has the place that it has in the signature."""

    def __init__(self, function: Any, *args: Any, cost: Any = 0) -> None:
        self.function, self.args, self.cost = function, args, cost


class OtherNames:
    """An attribute that is no parameter: all come by name."""

    def __init__(self, z: Any, a: Any) -> None:
        self.z, self.a, self.made = z, a, 0


class Unpacked:
    """No parameter has the name of an attribute."""

    def __init__(self, *children: Any) -> None:
        self.z, self.a = children


class Late:
    """Has no `__init__`."""


@dataclasses.dataclass
class Declared:
    """A dataclass's fields come as they are declared."""

    z: Any
    a: Any


def late(z: Any, a: Any) -> Late:
    """An instance with attributes that were set later."""
    new = Late()
    new.z, new.a = z, a  # type: ignore[attr-defined]  # that is the point
    return new


ORDERS: dict[str, tuple[Any, Any]] = {
    "parameters": (sp.Ratio(1, 2, 3, at=4), (1, 2, (3,), 4)),
    "a part of them": (Let("n", 1, 2), (1, 2)),
    "slots": (SlottedRatio(1, 2), (1, 2)),
    "inherited": (Derived(1, 2), (1, 2)),
    "decorated": (Decorated(1, 2), (1, 2)),
    "rest": (Call(1, 2, 3, cost=4), (1, (2, 3), 4)),
    "other names": (OtherNames(1, 2), (2, 0, 1)),
    "unpacked": (Unpacked(1, 2), (2, 1)),
    "no __init__": (late(1, 2), (2, 1)),
    "a dataclass": (Declared(1, 2), (1, 2)),
}
for _cls in (SlottedRatio, Derived, Decorated, Call, OtherNames, Unpacked, Late, Declared):
    pydag.register_fields(_cls)
pydag.register_fields(Let, meta_fields=["name"])


@pytest.mark.parametrize("name", ORDERS)
def test_children_come_in_the_order_of_the_parameters(name: str) -> None:
    """Children that are read from instances do, too; where names differ, by name."""
    tree, expected = ORDERS[name]
    assert pydag.dag_fold(parts, tree) == expected
    assert pydag.dag_fold(parts, [tree, tree]) == (expected, expected)
    assert pydag.dag_fold(parts, tree, down=lambda _, c: c, init=0) == expected


def test_the_traversal_stays_by_name() -> None:
    """The calls, the leaves and the paths are in the order of the names."""
    seen: list[Any] = []
    tree = sp.Ratio(1, 2, at=4)
    pydag.dag_fold(lambda node, _: seen.append(node), tree)
    assert seen[:4] == [4, 2, (), 1]
    assert pydag.dag_leaves(tree) == [4, 2, 1]
    assert pydag.dag_flatten_one_level(tree).entries == ("at", "bottom", "more", "top")


# --- contexts ---


def test_contexts_that_are_equal_and_not_the_same() -> None:
    """1, 1.0 and True, 0.0 and -0.0, (1,) and (True,) are different contexts; two NaNs are one."""
    contexts: list[Any] = [
        *(1, 1.0, True, 0.0, -0.0, (1,), (True,), 0j, -0j, complex(0, -0.0)),
        *(float("nan"), float("nan"), (float("nan"),), (float("nan"),), "a", "".join(["a"])),
    ]
    w, calls = sp.Opaque(), []

    class Holder(list[Any]):
        pass

    pydag.register_pydag_node(Holder, lambda x: (tuple(x), None), lambda _, items: Holder(items))
    holders = [Holder([w]) for _ in contexts]

    def down(node: Any, context: Any) -> Any:
        found = [c for holder, c in zip(holders, contexts, strict=True) if holder is node]
        return found[0] if found else None

    pydag.dag_fold(lambda node, _, c: calls.append(c) if node is w else None, holders, down=down)
    assert list(map(repr, calls)) == [
        *("1", "1.0", "True", "0.0", "-0.0", "(1,)", "(True,)", "0j", "(-0-0j)", "-0j"),
        *("nan", "(nan,)", "'a'"),
    ]


def test_root_has_the_first_context() -> None:
    """`init` is the root's context, None by default; a leaf asks `down` for nothing."""
    assert pydag.dag_fold(lambda *a: a, 7, down=lambda *_: 1 / 0) == (7, (), None)
    assert pydag.dag_fold(lambda *a: a, 7, down={}, init="c") == (7, (), "c")
    with pytest.raises(TypeError, match=r"init .* needs down"):
        pydag.dag_fold(lambda *a: a, 7, init="c")


@pytest.mark.parametrize("context", [[], {}, bytearray(), ([],)])
def test_context_that_cannot_be_hashed(context: Any) -> None:
    """Such a context is a TypeError, with the place."""
    with pytest.raises(TypeError) as info:
        pydag.dag_fold(lambda *_: 0, {"a": [1]}, down={list: lambda *_: context})
    assert "hash" in str(info.value)
    assert "tree['a']" in str(info.value) + "".join(getattr(info.value, "__notes__", []))
    with pytest.raises(TypeError, match="hash"):
        pydag.dag_fold(lambda *_: 0, 1, down={}, init=context)


# --- callbacks that turn against the fold ---


def test_exceptions_pass_through() -> None:
    """What the functions raise comes out as the same object, with a note of where it was."""
    for error in (KeyError("own"), StopIteration(), KeyboardInterrupt()):

        def raise_it(node: Any, *_: Any, error: BaseException = error) -> Any:
            if node == 7:
                raise error
            return 0

        error.__notes__ = []
        with pytest.raises(type(error)) as info:
            pydag.dag_fold(raise_it, {"a": [[1], (7,)]})
        assert info.value is error
        assert error.__notes__ == ["raised while folding tree['a'][1][0]"]
        error.__notes__ = []
        with pytest.raises(type(error)):
            pydag.dag_fold(raise_it, {"a": [[1], (7,)]}, down={})
        assert error.__notes__ == ["raised while folding tree['a'][1][0]"]

        def down(node: Any, _: Any, error: BaseException = error) -> Any:
            if node == (7,):
                raise error

        error.__notes__ = []
        with pytest.raises(type(error)):
            pydag.dag_fold(lambda *_: 0, {"a": [[1], (7,)]}, down=down)
        assert error.__notes__ == ["raised while folding tree['a'][1]"]


def test_objects_changed_meanwhile() -> None:
    """The fold goes through the DAG as it was: what the function clears is folded all the same."""
    for down in (
        {},
        {"down": lambda node, context: node.clear() if isinstance(node, list) else None},
    ):
        tree: Any = [[sp.Opaque(), 1], {"k": [2.5]}, sp.Module(w=[3.5])]
        seen: list[str] = []

        def f(node: Any, *_: Any, tree: Any = tree, seen: list[Any] = seen) -> None:
            tree.clear()
            gc.collect()
            if isinstance(node, sp.Module):
                vars(node).clear()
            seen.append(type(node).__name__)

        pydag.dag_fold(f, tree, **down)  # type: ignore[arg-type]  # as above
        assert seen == [
            *("Opaque", "int", "list", "float", "list", "dict", "float", "list", "Module", "list")
        ]


def test_folds_within_folds() -> None:
    """The function may fold the same tree, or rewrite it, and unregister its class."""
    cls = fresh()
    register(cls)
    node = cls([1, 2], [3])

    def f(obj: Any, below: tuple[int, ...]) -> int:
        if obj is node:
            pydag.unregister_pydag_node(cls)
        assert pydag.dag_fold(size, [[1], 2]) == 4
        assert pydag.dag_intern([obj])[0] is obj
        return size(obj, below)

    assert pydag.dag_fold(f, [node, node]) == 13


def test_cycles() -> None:
    """A cycle is refused before the function is called first."""
    tree: list[Any] = [1]
    tree.append({"k": tree})
    calls: list[Any] = []
    for fold in (pydag.dag_fold, pydag.dag_rewrite):
        with pytest.raises(pydag.CycleError, match=r"tree\[1\]\['k'\] is the list at tree"):
            fold(lambda *a: calls.append(a), tree)
    with pytest.raises(pydag.CycleError):
        pydag.dag_fold(lambda *a: calls.append(a), tree, down={})
    with pytest.raises(pydag.CycleError):
        pydag.dag_intern(tree)
    assert calls == []


def test_deep_results_die_well() -> None:
    """A result as deep as the tree is released without the C stack."""
    run_apart("""if True:
        import pydag
        tree = 0.5
        for _ in range(300_000):
            tree = [tree]
        out = pydag.dag_fold(lambda node, below: (type(node), below), tree)
        del out
        try:
            pydag.dag_fold(lambda node, below: below if len(below) else 1 / 0, [tree, tree])
        except ZeroDivisionError:
            print("well")
    """)
