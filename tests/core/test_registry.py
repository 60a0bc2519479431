# SPDX-License-Identifier: Apache-2.0
"""Registering classes: by functions, by methods, in namespaces, with optree, late and again."""

import time
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import optree
import pytest
from registering import Pair, flatten, fresh, register

import pydag

METHODS: Any = {"tree_flatten": flatten, "tree_unflatten": classmethod(lambda c, _, x: c(*x))}
BUILTIN = [list, tuple, dict, type(None), OrderedDict, defaultdict, deque]


@pytest.mark.parametrize("cls", BUILTIN)
def test_builtin_containers_are_taken(cls: Any) -> None:
    """The builtin containers can't be registered, nor unregistered."""
    for work in (
        lambda: register(cls),
        lambda: register(cls, namespace="some"),
        lambda: pydag.unregister_pydag_node(cls),
    ):
        with pytest.raises(ValueError, match="built-in type"):
            work()


def test_registered_twice() -> None:
    """A class can be registered once in each namespace, by either way of registering."""
    cls = fresh()
    register(cls)
    with pytest.raises(ValueError, match="already registered in the global namespace"):
        register(cls)
    with pytest.raises(ValueError, match="already registered in the global namespace"):
        pydag.register_fields(cls)
    register(cls, namespace="some")
    with pytest.raises(ValueError, match="already registered in namespace 'some'"):
        pydag.register_fields(cls, namespace="some")


@pytest.mark.parametrize("bad", [7, "Pair", None, Pair()])
def test_no_class(bad: Any) -> None:
    """Only classes can be registered."""
    with pytest.raises(TypeError, match="Expected a class"):
        register(bad)
    with pytest.raises(TypeError, match="Expected a class"):
        pydag.unregister_pydag_node(bad)


def test_bad_arguments() -> None:
    """Functions must be callable, entry types entry types, namespaces strings."""
    cls = fresh()
    with pytest.raises(TypeError):
        pydag.register_pydag_node(cls, 1, lambda *_: None)  # type: ignore[arg-type]  # meant
    with pytest.raises(TypeError):
        pydag.register_pydag_node(cls, flatten, None)  # type: ignore[arg-type]  # meant
    with pytest.raises(TypeError):
        register(cls, path_entry_type=int)
    with pytest.raises(TypeError, match="namespace"):
        register(cls, namespace=1)
    with pytest.raises(TypeError, match="namespace"):
        pydag.dag_flatten([1], namespace=None)  # type: ignore[call-overload]  # meant
    register(cls)  # nothing was left half done


def test_namespace_without_a_name() -> None:
    """An empty name is refused, as by optree; the global namespace is what is left out."""
    cls = fresh()
    register_class: Any = pydag.register_pydag_node_class
    empty = r"^The namespace cannot be an empty string\."
    for work in (
        lambda: register(cls, namespace=""),
        lambda: pydag.register_fields(cls, namespace=""),
        lambda: register_class(cls, namespace=""),
        lambda: register_class(""),
        lambda: pydag.unregister_pydag_node(cls, namespace=""),
    ):
        with pytest.raises(ValueError, match=empty):
            work()
    for namespace in ("some", "", None):
        with pytest.raises(
            ValueError, match=r"^Cannot specify `namespace` when the first argument"
        ):
            register_class("other", namespace=namespace)
    register(cls, namespace=optree.registry.__GLOBAL_NAMESPACE)
    assert pydag.dag_leaves(cls(), namespace="any") == [1, 2]
    assert pydag.unregister_pydag_node(cls).namespace == ""


def test_what_unregistering_returns() -> None:
    """Unregistering gives back what was registered, and the class is a leaf again."""
    cls = fresh()
    unflatten = lambda _, items: cls(*items)  # noqa: E731  # compared below
    pydag.register_pydag_node(cls, flatten, unflatten, namespace="some")
    entry: Any = pydag.unregister_pydag_node(cls, namespace="some")
    kind = optree.PyTreeKind.CUSTOM
    assert entry == (cls, flatten, unflatten, optree.AutoEntry, kind, "some")
    assert entry._fields == tuple(optree.registry.PyTreeNodeRegistryEntry.__dataclass_fields__)
    node = cls()
    assert pydag.dag_leaves(node, namespace="some") == [node]


def test_specs_outlive_their_registration() -> None:
    """A spec keeps working when its class is unregistered, or registered otherwise."""
    cls = fresh()
    register(cls)
    spec = pydag.dag_structure([cls(1, 2)])
    pydag.unregister_pydag_node(cls)
    pydag.register_pydag_node(cls, lambda p: ((p.x,), None), lambda _, items: cls(*items))
    back = pydag.dag_unflatten(spec, [3, 4])[0]
    assert (back.x, back.y) == (3, 4)
    assert spec != pydag.dag_structure([cls(1, 2)])
    assert spec.paths() == [(0, 0), (0, 1)]
    assert repr(spec) == "PyDagSpec([CustomTreeNode(Fresh[None], [*, *])])"
    with pytest.raises(ValueError, match="Custom node type mismatch"):
        spec.flatten_up_to([cls()])


def test_a_spec_matches_what_a_class_is_now() -> None:
    """A tree that fits at first sight doesn't match if its class is registered otherwise since."""
    cls = fresh()
    pydag.register_fields(cls, data_fields=("x", "y"))
    node = cls(1, 2)
    spec = pydag.dag_structure([node])
    for _ in range(2):
        assert spec.flatten_up_to([node]) == [1, 2]
    pydag.unregister_pydag_node(cls)
    for _ in range(2):
        with pytest.raises(ValueError, match="Custom node type mismatch"):
            spec.flatten_up_to([node])
    pydag.register_fields(cls, data_fields=("x",))
    for _ in range(2):
        with pytest.raises(ValueError, match="Custom node type mismatch"):
            spec.flatten_up_to([node])


def test_a_spec_of_a_namedtuple_matches_none_that_is_registered() -> None:
    """A namedtuple class that is registered later has nodes of another kind."""
    cls: Any = namedtuple("cls", "x y")
    spec = pydag.dag_structure((cls(1, 2),))
    for _ in range(2):
        assert spec.flatten_up_to((cls(3, 4),)) == [3, 4]
    with pytest.warns(
        UserWarning, match="is a subclass of `collections.namedtuple`, which is already"
    ):
        pydag.register_pydag_node(cls, lambda p: (tuple(p), None), lambda _, items: cls(*items))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"Expected an instance of collections\.namedtuple"):
            spec.flatten_up_to((cls(3, 4),))


def test_a_refused_warning_registers_nothing() -> None:
    """Where warnings are errors, a namedtuple class stays the node that it is by itself."""
    cls: Any = namedtuple("cls", "x y")
    options: Any
    for options, where in (({}, r"functions\.$"), ({"namespace": "w"}, "in namespace 'w'")):
        with pytest.raises(UserWarning, match=where):
            pydag.register_pydag_node(cls, tuple, lambda _, items: cls(*items), **options)
        assert repr(pydag.dag_structure(cls(1, 2), namespace="w")) == "PyDagSpec(cls(x=*, y=*))"


def test_class_without_identity() -> None:
    """`preserve_relative_identities=False` makes each occurrence a node, in each form."""
    custom, fields, decorated = fresh(), fresh(), type("Own", (Pair,), METHODS)
    register(custom, preserve_relative_identities=False)
    pydag.register_fields(fields, preserve_relative_identities=False)
    pydag.register_pydag_node_class(decorated, preserve_relative_identities=False)
    cls: Any
    for cls in (custom, fields, decorated):
        inner = [0.5]
        node = cls(inner, 7)
        leaves, spec = pydag.dag_flatten([node, node])
        assert (leaves, spec.num_shared) == ([0.5, 7, 7], 1)
        one, other = pydag.dag_unflatten(spec, leaves)
        assert one is not other
        assert one.x is other.x


@pytest.mark.parametrize("fields", [True, False])
def test_cycle_through_a_class_without_identity(fields: bool) -> None:
    """An object without identity that contains itself is a cycle all the same."""
    cls = fresh()
    if fields:
        pydag.register_fields(cls, preserve_relative_identities=False)
    else:
        register(cls, preserve_relative_identities=False)
    node = cls(1, [[]])
    node.y[0].append({"k": node})
    with pytest.raises(pydag.CycleError, match=r"\['k'\]"):
        pydag.dag_flatten((node, 1))
    node.y[0][0] = node.x
    assert pydag.dag_leaves((node, (node, node))) == [1, 1, 1, 1]


def test_registered_namedtuple_has_identity() -> None:
    """Registering a namedtuple is how to ask for its identity."""
    plain: Any
    asked: Any
    plain, asked = (namedtuple("P", "x y") for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pydag.register_pydag_node(asked, lambda p: (tuple(p), None), lambda _, c: asked(*c))
    for cls, shared in ((plain, 0), (asked, 1)):
        pair = cls(1, 2)
        assert pydag.dag_structure([pair, pair]).num_shared == shared


def test_methods() -> None:
    """A class may bring its own methods, with or without underscores; both or none."""
    for names in (("__tree_flatten__", "__tree_unflatten__"), ("tree_flatten", "tree_unflatten")):
        body: Any = dict(zip(names, (flatten, classmethod(lambda c, _, x: c(*x))), strict=True))
        cls: Any = pydag.register_pydag_node_class(type("Own", (Pair,), body))
        assert pydag.dag_map(lambda x: x + 1, cls(1, 2)).y == 3
        with pytest.raises(TypeError, match="must define both"):
            pydag.register_pydag_node_class(type("Half", (Pair,), {names[0]: flatten}))
    decorated: Any = pydag.register_pydag_node_class("named")(type("Own", (Pair,), body))
    assert pydag.dag_leaves(decorated(), namespace="named") == [1, 2]
    assert len(pydag.dag_leaves(decorated())) == 1


def test_an_entry_type_that_a_class_brings() -> None:
    """`TREE_PATH_ENTRY_TYPE` says how a child is reached: as it is written, and as it is called."""

    class ToHost(optree.PyTreeEntry):
        def __call__(self, obj: Any, /) -> Any:
            return (obj.x, obj.y)[self.entry]

        def codify(self, /, node: str = "") -> str:
            return f"{node}.to_host({self.entry})"

    cls: Any = type("Own", (Pair,), METHODS | {"TREE_PATH_ENTRY_TYPE": ToHost})
    pydag.register_pydag_node_class(cls)
    tree = {"k": cls(5, 6)}
    accessors = pydag.dag_accessors(tree)
    assert [a.codify("t") for a in accessors] == ["t['k'].to_host(0)", "t['k'].to_host(1)"]
    assert [a(tree) for a in accessors] == [5, 6]
    assert [(type(e), e.type) for e in accessors[0]] == [
        (optree.MappingEntry, dict),
        (ToHost, cls),
    ]


def test_a_class_of_struct_sequences_is_overridden() -> None:
    """Classes of struct sequences are nodes: to register one is a warning that names their kind."""
    with pytest.warns(UserWarning, match="PyStructSequence"):
        pydag.register_pydag_node(time.struct_time, list, time.struct_time, namespace="of a test")
    pydag.unregister_pydag_node(time.struct_time, namespace="of a test")
