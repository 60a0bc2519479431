"""What optree's introduction shows, shown with pydag: the same leaves, paths and texts.

Flattening and unflattening, registration, namespaces, `None`, key order, pickling.
NumPy arrays, and a small class that pretends to live on a device, stand for tensors.
"""

from __future__ import annotations

import operator
import pickle
import time
from collections import OrderedDict, UserDict, defaultdict, deque, namedtuple
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import optree
import pytest

import pydag

# Flattening.


def test_leaves_from_left_to_right_and_depth_first() -> None:
    """Keys are visited in sorted order, and a container before what comes after it."""
    leaves, spec = pydag.dag_flatten({"q": (20, [30, 40]), "p": 10, "r": 50, "s": 60})
    assert leaves == [10, 20, 30, 40, 50, 60]
    assert repr(spec) == "PyDagSpec({'p': *, 'q': (*, [*, *]), 'r': *, 's': *})"


@pytest.mark.parametrize(
    ("tree", "leaves", "text"),
    [(1, [1], "PyDagSpec(*)"), (None, [], "PyDagSpec(None)")],
    ids=["leaf", "none"],
)
def test_a_tree_may_be_a_single_object(tree: Any, leaves: list[Any], text: str) -> None:
    """A leaf is a tree of one leaf, and `None` is a tree of none."""
    flattened, spec = pydag.dag_flatten(tree)
    assert flattened == leaves
    assert repr(spec) == text


def test_equal_dicts_flatten_alike() -> None:
    """The order in which keys were set shows neither in the leaves nor in the structure."""
    one, other = {"p": [1, 2], "q": [3]}, {"q": [3], "p": [1, 2]}
    assert one == other
    assert pydag.dag_leaves(one) == pydag.dag_leaves(other)
    assert pydag.dag_structure(one) == pydag.dag_structure(other)
    assert hash(pydag.dag_structure(one)) == hash(pydag.dag_structure(other))


Point = namedtuple("Point", ["x", "y"])


class Pixel(Point):
    """A subclass of a namedtuple."""


class Size(NamedTuple):
    """A namedtuple written as a class."""

    width: int
    height: int


@pytest.mark.parametrize(
    ("tree", "leaves", "text"),
    [
        ((1, 2), [1, 2], "(*, *)"),
        ([1, 2], [1, 2], "[*, *]"),
        ({"q": 2, "p": 1}, [1, 2], "{'p': *, 'q': *}"),
        (Point(1, 2), [1, 2], "Point(x=*, y=*)"),
        (Pixel(1, 2), [1, 2], "Pixel(x=*, y=*)"),
        (Size(1, 2), [1, 2], "Size(width=*, height=*)"),
        (OrderedDict(q=2, p=1), [2, 1], "OrderedDict({'q': *, 'p': *})"),
        (defaultdict(int, q=2, p=1), [1, 2], "defaultdict(<class 'int'>, {'p': *, 'q': *})"),
        (deque([1, 2]), [1, 2], "deque([*, *])"),
        (deque([1, 2], maxlen=3), [1, 2], "deque([*, *], maxlen=3)"),
        (
            time.struct_time((2020, 1, 2, 3, 4, 5, 6, 7, 0)),
            [2020, 1, 2, 3, 4, 5, 6, 7, 0],
            "time.struct_time(tm_year=*, tm_mon=*, tm_mday=*, tm_hour=*, tm_min=*, tm_sec=*, "
            "tm_wday=*, tm_yday=*, tm_isdst=*)",
        ),
    ],
    ids=[
        "tuple",
        "list",
        "dict",
        "namedtuple",
        "namedtuple-subclass",
        "namedtuple-class",
        "OrderedDict",
        "defaultdict",
        "deque",
        "deque-maxlen",
        "struct-sequence",
    ],
)
def test_containers_known_from_the_start(tree: Any, leaves: list[Any], text: str) -> None:
    """Python's own containers are nodes, keep their type and what belongs to it."""
    flattened, spec = pydag.dag_flatten(tree)
    rebuilt = pydag.dag_unflatten(spec, flattened)
    assert flattened == leaves
    assert repr(spec) == f"PyDagSpec({text})"
    assert type(rebuilt) is type(tree)
    assert rebuilt == tree


def test_a_deque_keeps_its_bound_and_a_defaultdict_its_factory() -> None:
    """What a container knows beside its items is part of the structure."""
    bounded, counts = pydag.dag_map(operator.neg, [deque([1], maxlen=3), defaultdict(int, p=1)])
    assert bounded.maxlen == 3
    assert counts.default_factory is int


class Stack(list[int]):
    """A subclass of a container, which nobody registered."""


@pytest.mark.parametrize("tree", [Stack([1, 2]), {1, 2}, object()], ids=["list", "set", "object"])
def test_objects_of_unregistered_classes_are_leaves(tree: object) -> None:
    """The very type counts: to inherit from a container makes no node."""
    (leaf,) = pydag.dag_leaves(tree)
    assert leaf is tree


# Registration.

pydag.register_pydag_node(
    set,
    lambda members: (sorted(members), None, None),
    lambda _, children: set(children),
    namespace="readme.set",
)


def test_a_class_registered_with_two_functions() -> None:
    """In its namespace a set is a node whose children have plain indices as entries."""
    paths, leaves, spec = pydag.dag_flatten_with_path({7, 5, 6}, namespace="readme.set")
    assert paths == [(0,), (1,), (2,)]
    assert leaves == [5, 6, 7]
    assert repr(spec) == "PyDagSpec(CustomTreeNode(set[None], [*, *, *]), namespace='readme.set')"


def test_a_map_rebuilds_a_registered_class() -> None:
    """The second function makes a set of the images."""
    assert pydag.dag_map(operator.neg, {7, 5, 6}, namespace="readme.set") == {-7, -6, -5}


class Tensor:
    """An array on a device."""

    def __init__(self, values: Any, device: str) -> None:
        self.values = np.asarray(values, dtype=np.float32)
        self.device = device

    def to_host(self) -> Any:
        """A copy of the array."""
        return self.values.copy()


class ToHost(optree.PyTreeEntry):
    """The step from a tensor to its array."""

    def __call__(self, obj: Any, /) -> Any:
        """Takes the step."""
        assert self.entry == 0
        return obj.to_host()

    def codify(self, /, node: str = "") -> str:
        """Writes the step as Python would."""
        assert self.entry == 0
        return f"{node}.to_host()"


pydag.register_pydag_node(
    Tensor,
    lambda tensor: ((tensor.to_host(),), {"device": tensor.device}),
    lambda aux_data, children: Tensor(children[0], **aux_data),
    path_entry_type=ToHost,
    namespace="readme.host",
)


def tensors() -> dict[str, Tensor]:
    """A weight on one device and a bias on another."""
    return {"weight": Tensor([[1.0, 1.0]], "gpu:0"), "bias": Tensor([0.0, 0.0], "cpu")}


def test_a_class_is_a_leaf_outside_its_namespace() -> None:
    """Without the namespace the tensors themselves are the leaves."""
    tree = tensors()
    leaves, spec = pydag.dag_flatten(tree)
    assert [leaf is tree[name] for name, leaf in zip(("bias", "weight"), leaves, strict=True)] == [
        True,
        True,
    ]
    assert repr(spec) == "PyDagSpec({'bias': *, 'weight': *})"


def test_a_class_is_a_node_in_its_namespace() -> None:
    """With the namespace the arrays are the leaves, and the devices belong to the structure."""
    leaves, spec = pydag.dag_flatten(tensors(), namespace="readme.host")
    assert [leaf.tolist() for leaf in leaves] == [[0.0, 0.0], [[1.0, 1.0]]]
    assert repr(spec) == (
        "PyDagSpec({'bias': CustomTreeNode(Tensor[{'device': 'cpu'}], [*]), "
        "'weight': CustomTreeNode(Tensor[{'device': 'gpu:0'}], [*])}, namespace='readme.host')"
    )


def test_children_without_entries_have_indices() -> None:
    """A flatten function that names no entries gets 0, 1, 2, ... in the paths."""
    paths = pydag.dag_paths(tensors(), namespace="readme.host")
    assert paths == [("bias", 0), ("weight", 0)]


def test_an_entry_type_says_how_a_child_is_reached() -> None:
    """An accessor is written and followed by the entry type of the registration."""
    tree = tensors()
    bias, weight = pydag.dag_accessors(tree, namespace="readme.host")
    assert bias.codify("tree") == "tree['bias'].to_host()"
    assert weight.codify("tree") == "tree['weight'].to_host()"
    assert weight(tree).tolist() == [[1.0, 1.0]]
    assert [type(entry) for entry in bias] == [optree.MappingEntry, ToHost]


def test_unflattening_makes_copies_of_registered_objects() -> None:
    """Leaves and structure give equal tensors on the same devices, and new ones."""
    tree = tensors()
    leaves, spec = pydag.dag_flatten(tree, namespace="readme.host")
    rebuilt = pydag.dag_unflatten(spec, leaves)
    assert list(rebuilt) == ["weight", "bias"]
    assert rebuilt["weight"].values.tolist() == [[1.0, 1.0]]
    assert [rebuilt["weight"].device, rebuilt["bias"].device] == ["gpu:0", "cpu"]
    assert rebuilt["weight"] is not tree["weight"]


def test_a_shared_tensor_is_opened_once() -> None:
    """Each opening would make another copy; the identity of the tensor is what counts."""
    tensor = Tensor([1.0], "cpu")
    leaves, spec = pydag.dag_flatten([tensor, tensor], namespace="readme.host")
    one, other = pydag.dag_unflatten(spec, leaves)
    assert len(leaves) == 1
    assert one is other


@pydag.register_pydag_node_class(namespace="readme.dict")
class Backwards(UserDict[str, Any]):
    """A mapping whose children come in descending order of their keys."""

    TREE_PATH_ENTRY_TYPE = optree.MappingEntry

    def __init_subclass__(cls) -> None:
        """Registers each subclass where this class is registered."""
        super().__init_subclass__()
        pydag.register_pydag_node_class(cls, namespace="readme.dict")

    def tree_flatten(self) -> tuple[list[Any], list[str], list[str]]:
        """The values, and the keys both as state and as entries."""
        keys = sorted(self, reverse=True)
        return [self[key] for key in keys], keys, keys

    @classmethod
    def tree_unflatten(cls, keys: list[str], children: Iterable[Any]) -> Backwards:
        """A mapping of these keys and values."""
        return cls(zip(keys, children, strict=True))


class Other(Backwards):
    """A subclass, registered by its base class."""


def backwards(inner: type[Backwards] = Backwards) -> Backwards:
    """A mapping that holds a number, a tuple, and a mapping of class `inner`."""
    return Backwards(q=40, p=(20, 30), r=inner({"s": 50, "t": 60}))


def test_a_decorated_class_is_a_leaf_outside_its_namespace() -> None:
    """Without the namespace the outermost mapping is the only leaf, at the empty path."""
    tree = backwards()
    paths, leaves, spec = pydag.dag_flatten_with_path(tree)
    assert paths == [()]
    assert leaves[0] is tree
    assert repr(spec) == "PyDagSpec(*)"


@pytest.mark.parametrize("inner", [Backwards, Other])
def test_a_decorated_class_is_a_node_in_its_namespace(inner: type[Backwards]) -> None:
    """Its methods give children, state and entries; so do those of a registered subclass."""
    paths, leaves, spec = pydag.dag_flatten_with_path(backwards(inner), namespace="readme.dict")
    assert paths == [("r", "t"), ("r", "s"), ("q",), ("p", 0), ("p", 1)]
    assert leaves == [60, 50, 40, 20, 30]
    assert repr(spec) == (
        "PyDagSpec(CustomTreeNode(Backwards[['r', 'q', 'p']], "
        f"[CustomTreeNode({inner.__name__}[['t', 's']], [*, *]), *, (*, *)]), "
        "namespace='readme.dict')"
    )


@pytest.mark.parametrize("inner", [Backwards, Other])
def test_a_decorated_class_names_its_entry_type(inner: type[Backwards]) -> None:
    """Accessors are keys of a mapping, and each knows the class that it is a key of."""
    tree = backwards(inner)
    accessors, leaves, _ = pydag.dag_flatten_with_accessor(tree, namespace="readme.dict")
    assert [accessor.codify("x") for accessor in accessors] == [
        "x['r']['t']",
        "x['r']['s']",
        "x['q']",
        "x['p'][0]",
        "x['p'][1]",
    ]
    assert [type(entry) for entry in accessors[3]] == [optree.MappingEntry, optree.SequenceEntry]
    assert [entry.type for entry in accessors[0]] == [Backwards, inner]
    assert [entry.type for entry in accessors[3]] == [Backwards, tuple]
    assert [accessor(tree) for accessor in accessors] == leaves


def test_a_decorated_class_is_rebuilt() -> None:
    """A map gives mappings of the same classes and keys."""
    doubled = pydag.dag_map(lambda x: 2 * x, backwards(Other), namespace="readme.dict")
    assert doubled == {"q": 80, "p": (40, 60), "r": {"s": 100, "t": 120}}
    assert type(doubled) is Backwards
    assert type(doubled["r"]) is Other


def test_a_class_is_registered_once_in_a_namespace() -> None:
    """To register it again is an error; in another namespace it may mean something else."""
    with pytest.raises(ValueError, match="already registered"):
        pydag.register_pydag_node(
            set, lambda s: (list(s), None), lambda _, c: set(c), namespace="readme.set"
        )
    pydag.register_pydag_node(
        set, lambda _: ((), None), lambda _, __: set(), namespace="readme.empty-set"
    )
    assert pydag.dag_leaves({7}, namespace="readme.empty-set") == []
    assert pydag.dag_leaves({7}, namespace="readme.set") == [7]


@pytest.mark.parametrize("cls", [tuple, list, dict, OrderedDict, defaultdict, deque, type(None)])
def test_containers_known_from_the_start_stay_as_they_are(cls: type) -> None:
    """Python's own containers can't be registered, in any namespace."""
    with pytest.raises(ValueError, match="is a built-in type and cannot be re-registered"):
        pydag.register_pydag_node(
            cls, lambda _: ((), None), lambda _, __: None, namespace="readme.built-in"
        )


def test_a_registration_can_be_taken_back() -> None:
    """Afterwards objects of the class are leaves again."""

    class Box:
        pass

    pydag.register_pydag_node(Box, lambda _: ((), None), lambda _, __: Box(), namespace="readme")
    box = Box()
    assert pydag.dag_leaves(box, namespace="readme") == []
    pydag.unregister_pydag_node(Box, namespace="readme")
    assert pydag.dag_leaves(box, namespace="readme") == [box]


def test_a_class_without_a_namespace_is_a_node_in_all() -> None:
    """The namespace may be left out, which means the global one."""

    class Box:
        pass

    pydag.register_pydag_node(Box, lambda _: ((), None), lambda _, __: Box())
    assert pydag.dag_leaves(Box()) == []
    assert pydag.dag_leaves(Box(), namespace="readme.set") == []


def test_what_optree_knows_pydag_knows() -> None:
    """A class registered with optree is a node here too, in the same namespace."""

    class Pair(list[Any]):
        pass

    optree.register_pytree_node(
        Pair,
        lambda pair: (list(pair), None),
        lambda _, items: Pair(items),
        namespace="readme.optree",
    )
    shared = Pair([1, 2])
    tripled = pydag.dag_map(lambda x: 3 * x, [shared, shared], namespace="readme.optree")
    assert tripled == [[3, 6], [3, 6]]
    assert type(tripled[0]) is Pair
    assert tripled[0] is tripled[1]


# One class, several meanings: an array as nested lists, as numbers, and as itself for ever.

pydag.register_pydag_node(
    np.ndarray,
    lambda array: (np.atleast_1d(array).tolist(), array.ndim == 0),
    lambda is_scalar, rows: np.asarray(rows[0] if is_scalar else rows),
    namespace="readme.rows",
)
pydag.register_pydag_node(
    np.ndarray,
    lambda array: (list(array.ravel()), {"shape": array.shape, "dtype": array.dtype}),
    lambda aux_data, numbers: np.asarray(numbers, aux_data["dtype"]).reshape(aux_data["shape"]),
    namespace="readme.numbers",
)
pydag.register_pydag_node(
    np.ndarray,
    lambda array: ([array.ravel()], array.shape),
    lambda shape, children: children[0].reshape(shape),
    namespace="readme.endless",
)
pydag.register_pydag_node(
    np.ndarray,
    lambda array: ([array[i : i + 1] for i in range(array.size)], array.shape),
    lambda shape, children: np.concatenate(children).reshape(shape),
    namespace="readme.pieces",
)


def square() -> Any:
    """The numbers 0 to 3 in two rows."""
    return np.arange(4, dtype=np.int64).reshape(2, 2)


def test_an_array_as_nested_lists() -> None:
    """Children may be containers, which are opened in turn."""
    leaves, spec = pydag.dag_flatten(square(), namespace="readme.rows")
    assert leaves == [0, 1, 2, 3]
    assert repr(spec) == (
        "PyDagSpec(CustomTreeNode(ndarray[False], [[*, *], [*, *]]), namespace='readme.rows')"
    )


def test_an_array_as_nested_lists_takes_the_type_of_its_numbers() -> None:
    """Nothing but the shape is remembered, so that integers may become floats."""
    shifted = pydag.dag_map(lambda x: x + 1.5, square(), namespace="readme.rows")
    assert shifted.tolist() == [[1.5, 2.5], [3.5, 4.5]]


def test_a_scalar_array_as_nested_lists() -> None:
    """The state tells an array without dimensions from one of length 1."""
    shifted = pydag.dag_map(lambda x: x + 1.5, np.asarray(1), namespace="readme.rows")
    assert shifted.shape == ()
    assert shifted == 2.5


def test_an_array_as_numbers() -> None:
    """State may be a dict; it is shown as it prints itself."""
    leaves, spec = pydag.dag_flatten(square(), namespace="readme.numbers")
    assert leaves == [0, 1, 2, 3]
    assert repr(spec) == (
        "PyDagSpec(CustomTreeNode(ndarray[{'shape': (2, 2), 'dtype': dtype('int64')}], "
        "[*, *, *, *]), namespace='readme.numbers')"
    )


def test_an_array_as_numbers_keeps_its_type() -> None:
    """The remembered type casts the images back to integers."""
    shifted = pydag.dag_map(lambda x: x + 1.5, square(), namespace="readme.numbers")
    assert shifted.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("namespace", ["readme.endless", "readme.pieces"])
def test_an_array_of_arrays_for_ever(namespace: str) -> None:
    """Children of a node's own class that never end are an error, not a crash."""
    with pytest.raises(RecursionError, match="Maximum recursion depth exceeded"):
        pydag.dag_flatten(square(), namespace=namespace)


# None.


@pytest.mark.parametrize(
    ("none_is_leaf", "leaves", "text"),
    [
        (False, [10, 20, 30, 40, 50], "{'p': *, 'q': (*, [*, *]), 'r': None, 's': *}"),
        (
            True,
            [10, 20, 30, 40, None, 50],
            "{'p': *, 'q': (*, [*, *]), 'r': *, 's': *}, NoneIsLeaf",
        ),
    ],
    ids=["node", "leaf"],
)
def test_none_is_a_node_or_a_leaf(none_is_leaf: bool, leaves: list[Any], text: str) -> None:
    """By default `None` belongs to the structure; with `none_is_leaf` it is listed."""
    tree = {"q": (20, [30, 40]), "p": 10, "r": None, "s": 50}
    flattened, spec = pydag.dag_flatten(tree, none_is_leaf=none_is_leaf)
    assert flattened == leaves
    assert repr(spec) == f"PyDagSpec({text})"
    assert pydag.dag_unflatten(spec, flattened) == tree


def test_none_alone_as_a_leaf() -> None:
    """With `none_is_leaf`, `None` is a tree of one leaf, and the spec says so."""
    leaves, spec = pydag.dag_flatten(None, none_is_leaf=True)
    assert leaves == [None]
    assert repr(spec) == "PyDagSpec(*, NoneIsLeaf)"


def test_none_has_no_identity() -> None:
    """Nodes or leaves, several `None` are several: there is only one object to be."""
    assert repr(pydag.dag_structure([None, None])) == "PyDagSpec([None, None])"
    assert pydag.dag_leaves([None, None], none_is_leaf=True) == [None, None]


def parameters() -> OrderedDict[str, Any]:
    """The parameters of a layer that has no bias."""
    return OrderedDict(weight=np.ones((2, 3)), bias=None)


def test_a_map_passes_by_none() -> None:
    """The function never sees a `None` that is a node, and it stays where it was."""
    zeros = pydag.dag_map(np.zeros_like, parameters())
    assert list(zeros) == ["weight", "bias"]
    assert zeros["weight"].tolist() == [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert zeros["bias"] is None


def test_a_map_meets_none_as_a_leaf() -> None:
    """With `none_is_leaf` the function gets it, and what it raises passes through."""
    with pytest.raises(TypeError, match="bad operand type for unary -: 'NoneType'"):
        pydag.dag_map(operator.neg, parameters(), none_is_leaf=True)


def test_a_map_may_replace_none() -> None:
    """A function that is ready for `None` may put something in its place."""
    zeros = pydag.dag_map(
        lambda x: 0 if x is None else np.zeros_like(x), parameters(), none_is_leaf=True
    )
    assert zeros["weight"].tolist() == [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert zeros["bias"] == 0


# The order of keys.


@pytest.mark.parametrize(
    "tree", [{"p": [1, 2], "q": [3]}, {"q": [3], "p": [1, 2]}], ids=["sorted", "unsorted"]
)
def test_a_dict_is_visited_in_sorted_order(tree: dict[str, Any]) -> None:
    """However its keys were set, they are visited from the smallest to the largest."""
    leaves, spec = pydag.dag_flatten(tree)
    assert leaves == [1, 2, 3]
    assert repr(spec) == "PyDagSpec({'p': [*, *], 'q': [*]})"


def test_an_ordered_dict_is_visited_in_its_own_order() -> None:
    """`OrderedDict`s that differ in order alone are different trees."""
    one = OrderedDict([("p", [1, 2]), ("q", [3])])
    other = OrderedDict([("q", [3]), ("p", [1, 2])])
    assert pydag.dag_leaves(one) == [1, 2, 3]
    assert pydag.dag_leaves(other) == [3, 1, 2]
    assert repr(pydag.dag_structure(one)) == "PyDagSpec(OrderedDict({'p': [*, *], 'q': [*]}))"
    assert repr(pydag.dag_structure(other)) == "PyDagSpec(OrderedDict({'q': [*], 'p': [*, *]}))"
    assert pydag.dag_structure(one) != pydag.dag_structure(other)


def test_a_rebuilt_dict_has_its_keys_in_the_order_they_were_set() -> None:
    """Sorting is for the visit alone."""
    leaves, spec = pydag.dag_flatten({"q": [3], "p": [1, 2]})
    assert list(pydag.dag_unflatten(spec, leaves).items()) == [("q", [3]), ("p", [1, 2])]


def test_a_mapped_dict_has_its_keys_in_the_order_they_were_set() -> None:
    """A map, too, keeps the order."""
    shifted = pydag.dag_map(lambda x: x + 1, {"q": [3], "p": [1, 2]})
    assert list(shifted.items()) == [("q", [4]), ("p", [2, 3])]


def test_keys_that_can_be_compared_are_sorted_across_types() -> None:
    """An integer and a float have their natural order."""
    assert pydag.dag_paths({2: "two", 1.5: "less"}) == [(1.5,), (2,)]


def test_keys_that_cannot_be_compared_are_sorted_by_type_first() -> None:
    """Floats come before integers before strings: by the names of their classes."""
    leaves, spec = pydag.dag_flatten({"k": 30, 2: 20, 1.5: 10})
    assert leaves == [10, 20, 30]
    assert repr(spec) == "PyDagSpec({1.5: *, 2: *, 'k': *})"
    assert list(pydag.dag_unflatten(spec, leaves)) == ["k", 2, 1.5]


# Pickling.


def test_a_pickled_spec_keeps_the_order_of_keys() -> None:
    """A restored spec is equal, and rebuilds dicts in the order in which they were set."""
    leaves, spec = pydag.dag_flatten({"q": [3], "p": [1, 2]})
    restored = pickle.loads(pickle.dumps(spec))
    assert restored == spec
    assert hash(restored) == hash(spec)
    assert repr(restored) == "PyDagSpec({'p': [*, *], 'q': [*]})"
    assert list(pydag.dag_unflatten(restored, leaves).items()) == [("q", [3]), ("p", [1, 2])]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_spec_keeps_what_is_shared(protocol: int) -> None:
    """A restored spec builds a list that stood at two places as one list, by any protocol."""
    shared = [1, 2]
    leaves, spec = pydag.dag_flatten({"a": shared, "b": shared})
    restored = pickle.loads(pickle.dumps(spec, protocol))
    rebuilt = pydag.dag_unflatten(restored, leaves)
    assert repr(restored) == "PyDagSpec({'a': &0 [*, *], 'b': *0})"
    assert rebuilt == {"a": [1, 2], "b": [1, 2]}
    assert rebuilt["a"] is rebuilt["b"]


def test_a_pickled_spec_knows_registered_classes() -> None:
    """A registered class is written by name, its namespace with it."""
    leaves, spec = pydag.dag_flatten(backwards(Other), namespace="readme.dict")
    restored = pickle.loads(pickle.dumps(spec))
    assert restored == spec
    assert pydag.dag_unflatten(restored, leaves) == backwards(Other)
