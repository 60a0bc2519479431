# SPDX-License-Identifier: Apache-2.0
"""`PyDagSpec.to_json` and `from_json`."""

import collections
import json
import math
import struct
import time
import warnings
from typing import Any

import pytest
import specimens as sp
from hypothesis import given
from hypothesis import strategies as st
from isomorphism import difference
from registering import Layer
from strategies import BUILTIN, dags, thorough

import pydag
from pydag import PyDagSpec, dag_structure, dag_unflatten
from pydag.structure import values

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.binary()
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)


def again(spec: PyDagSpec) -> PyDagSpec:
    return PyDagSpec.from_json(spec.to_json())


class Tagged:
    def __init__(self, *children: Any, tag: Any = None) -> None:
        self.children, self.tag = children, tag


pydag.register_pydag_node(
    Tagged, lambda x: (x.children, x.tag), lambda tag, children: Tagged(*children, tag=tag)
)


def exact(x: Any) -> Any:
    """A value as something that tells 0.0 from -0.0, NaN from NaN, and 1 from True."""
    if type(x) is float:
        return "float", struct.pack(">d", x)
    return (type(x), [exact(item) for item in x]) if type(x) is tuple else (type(x), x)


@given(plain)
def test_aux_data_comes_back_exactly(value: Any) -> None:
    """None, bool, int, float, str, bytes and tuples of them come back bit for bit."""
    spec = dag_structure(Tagged(1, tag=value))
    assert exact(dag_unflatten(again(spec), [1]).tag) == exact(value)


@pytest.mark.parametrize(
    "value",
    [
        *(math.nan, math.inf, -math.inf, -0.0, 5e-324, 2**53 + 1, -(2**4000), 10**5000, True, 1),
        *("\ud83d\ude00", "\ud800", "\0", "é", b"\xff", (), ((),), (b"", (None, "x"))),
        *(struct.unpack(">d", bytes.fromhex("7ff8000000000123"))[0], Tagged, Layer),
    ],
    ids=lambda value: repr(type(value)),
)
def test_hard_values(value: Any) -> None:
    """Halves of surrogate pairs, huge integers, NaN's bits and registered classes come back."""
    spec = dag_structure([Layer(value, w=1), Tagged(tag=value)])
    layer, tagged = dag_unflatten(again(spec), [1])
    assert exact(layer.name) == exact(tagged.tag) == exact(value)


@thorough
@given(dags(BUILTIN))
def test_builtin_containers_come_back(tree: Any) -> None:
    """Any DAG of builtin containers whose keys can be written gives an equal structure."""
    spec = dag_structure(tree)
    try:
        text = spec.to_json()
    except TypeError:
        return
    if '"namedtuple"' in text or '"structseq"' in text:
        with pytest.raises(ValueError, match="register it, or load it with classes= or like="):
            PyDagSpec.from_json(text)
        return
    assert again(spec) == spec
    assert again(spec).is_same_order(spec)
    leaves = [object() for _ in range(spec.num_leaves)]
    assert not difference(again(spec).unflatten(leaves), spec.unflatten(leaves))


@pytest.mark.parametrize(
    "tree",
    [
        {"b": 1, "a": 2},
        collections.OrderedDict(b=1, a=2),
        collections.defaultdict(list, a=[1]),
        collections.defaultdict(None, a=1),
        collections.defaultdict(Tagged),
        collections.deque([1, 2], maxlen=5),
        {(1, "a"): 1, None: 2, 1.5: 3, b"x": 4, Tagged: 5, True: 6, "\ud800": 7},
        [],
        (),
        None,
        7,
    ],
    ids=repr,
)
def test_each_container(tree: Any) -> None:
    """Containers with their order, factory and length come back as they were."""
    spec = dag_structure(tree)
    rebuilt = again(spec).unflatten(pydag.dag_leaves(tree))
    assert again(spec) == spec
    assert rebuilt == tree
    assert type(rebuilt) is type(tree)
    if isinstance(tree, dict):
        assert list(rebuilt) == list(tree)


def test_sharing_comes_back() -> None:
    """Sixty levels of [t, t] are written and read in linear time."""
    tree: Any = [1.0]
    for _ in range(60):
        tree = [tree, tree]
    began = time.thread_time()
    spec = dag_structure(tree)
    assert again(spec) == spec
    assert len(spec.to_json()) < 4000
    assert time.thread_time() - began < 1


def test_depth() -> None:
    """A chain of a hundred thousand lists is written and read without recursion."""
    tree: Any = 1
    for _ in range(100_000):
        tree = [tree]
    spec = dag_structure(tree)
    assert again(spec) == spec


@pytest.mark.parametrize(
    ("tree", "where"),
    [
        ({"a": [{sp.Opaque(): 1}]}, "at tree['a'][0]: an object of"),
        ([Tagged(tag=[1])], "at tree[0]: an object of <class 'list'>"),
        ([Layer({"x"}, w=1)], "at tree[0]: an object of <class 'set'>"),
        ([Layer((1, object()), w=1)], "at tree[0]: an object of <class 'object'>"),
        ([collections.defaultdict(lambda: 1)], "at tree[0]: the default factory"),
        ([Layer(int, w=1)], "at tree[0]: <class 'int'>, which isn't registered"),
        ([Layer(1j, w=1)], "at tree[0]: an object of <class 'complex'>"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_what_cannot_be_written(tree: Any, where: str) -> None:
    """Anything else is a TypeError with the path."""
    with pytest.raises(TypeError) as caught:
        dag_structure(tree).to_json()
    assert where in str(caught.value)


def test_subclasses_are_not_their_base() -> None:
    """A member of a string enum would come back as a string: it is refused."""
    with pytest.raises(TypeError, match="at tree"):
        dag_structure(Layer(sp.IntChild(3), w=1)).to_json()


def test_deep_values_are_refused() -> None:
    """A tuple that JSON's readers could not open is a TypeError, not a crash."""
    deep: Any = ()
    for _ in range(1000):
        deep = (deep,)
    with pytest.raises(TypeError, match="nested more than 100 deep"):
        dag_structure(Tagged(tag=deep)).to_json()
    written: Any = 1
    for _ in range(102):
        written = {"tuple": [written]}
    text = dag_structure(Tagged(tag="here")).to_json().replace('"here"', json.dumps(written))
    with pytest.raises(ValueError, match="nested more than 100 deep"):
        PyDagSpec.from_json(text)


@pytest.mark.measures
def test_large_values_are_refused() -> None:
    """A tuple that is exponentially long when it is written out is a TypeError, in a moment."""
    wide: Any = (1,)
    for _ in range(60):
        wide = (wide, wide)
    with pytest.raises(TypeError, match="more than 1000000 items"):
        dag_structure(Tagged(tag=wide)).to_json()


def test_unregistered_class_is_named() -> None:
    """A class that isn't registered here is a ValueError that names it."""
    spec = dag_structure([Tagged(1)])
    text = spec.to_json().replace("Tagged", "Unheard")
    with pytest.raises(ValueError, match=r"refs\[0\].*Unheard.*import the module"):
        PyDagSpec.from_json(text)


def test_two_classes_of_one_name() -> None:
    """The one that was registered last counts."""
    text = dag_structure([Tagged(1, tag=1)]).to_json()
    other = type("Tagged", (), {"__module__": Tagged.__module__})
    pydag.register_pydag_node(other, lambda x: ((1,), None), lambda aux, c: other())
    try:
        assert dag_structure([Tagged(1, tag=1)]).to_json() == text
        [found] = PyDagSpec.from_json(text).children()
        assert found.type is other
    finally:
        pydag.unregister_pydag_node(other)
    assert PyDagSpec.from_json(text).child(0).type is Tagged


@pytest.mark.parametrize(
    ("first", "second", "warns"),
    [
        ({}, {}, False),
        ({"data_fields": ["w"]}, {"data_fields": ["w"]}, False),
        ({"data_fields": ["w"]}, {}, True),
        ({}, {"data_fields": ["w"]}, True),
    ],
)
def test_a_class_that_is_defined_anew(
    first: dict[str, Any], second: dict[str, Any], warns: bool
) -> None:
    """The class takes the old one's place; it is an error where it declares other fields."""
    made = []
    for fields in (first, second):
        cls = type("Anew", (), {"__module__": __name__})
        made.append(pydag.register_module(cls, **fields))
    try:
        thing = made[0]()
        thing.w = 1.0
        text = dag_structure(thing).to_json()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert PyDagSpec.from_json(text).type is made[1]
        assert bool(caught) is warns
        if warns:
            assert "different fields; the last one is taken" in str(caught[0].message)
    finally:
        for cls in made:
            pydag.unregister_pydag_node(cls)


def test_namespace() -> None:
    """Classes are looked up in the namespace that was written, or in the one given."""
    Local = type("Local", (), {"__module__": __name__})  # noqa: N806 (a class)
    for space in ("json-one", "json-two"):
        pydag.register_pydag_node(
            Local, lambda x: ((1,), None), lambda aux, c: Local(), namespace=space
        )
    spec = dag_structure([Local()], namespace="json-one")
    assert again(spec) == spec
    other = PyDagSpec.from_json(spec.to_json(), namespace="json-two")
    assert other == dag_structure([Local()], namespace="json-two")
    with pytest.raises(ValueError, match="json-three"):
        PyDagSpec.from_json(spec.to_json(), namespace="json-three")
    for space in ("json-one", "json-two"):
        pydag.unregister_pydag_node(Local, namespace=space)


GOOD = json.loads(dag_structure({"a": (w := [1]), "b": w, "c": None}).to_json())


def changed(**fields: Any) -> str:
    return json.dumps(GOOD | fields)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "the text"),
        ("[" * 100_000, "the text"),
        ('{"pydag": 1', "the text"),
        ("NaN", "the text"),
        ("9" * 10_000, "the text"),
        ("[]", "the text"),
        ("{}", "pydag"),
        (changed(pydag=2), "pydag: expected version 1, got 2"),
        (changed(pydag=True), "pydag"),
        (changed(none_is_leaf=0), "none_is_leaf"),
        (changed(namespace=3), "namespace"),
        (changed(extra=1), "extra"),
        (changed(nodes={}), "nodes"),
        (changed(nodes=[]), "nodes"),
        (changed(nodes=[["dict", 3, 0], "*"]), "nodes"),
        (changed(nodes=[["dict", 10**9, 0]]), r"nodes\[0\]: it must have one child for each key"),
        (changed(nodes=[["list", 10**10]]), r"nodes\[0\]"),
        (changed(nodes=[["list", 2**31]]), "nodes"),
        (changed(nodes=[["list", -1]]), r"nodes\[0\]"),
        (changed(nodes=[["list", 1.0], "*"]), r"nodes\[0\]"),
        (changed(nodes=[["&tuple", 0]]), r"nodes\[0\]: a tuple can't be shared"),
        (changed(nodes=[["set", 0]]), r"nodes\[0\]: unknown kind 'set'"),
        (changed(nodes=["*", "*"]), r"nodes\[1\]"),
        (changed(nodes=[0]), r"nodes\[0\]: alias 0"),
        (changed(nodes=[["&list", 1], 0]), r"nodes\[1\]: alias 0"),
        (changed(nodes=[["list", 1], "&*"], refs=[]), "nodes: anchor 0 has no alias"),
        (changed(nodes=[["dict", 3]]), r"nodes\[0\]: expected 1 references"),
        (changed(nodes=[["dict", 3, 7]]), r"nodes\[0\]"),
        (changed(nodes=["*"]), r"refs\[0\]: no node uses it"),
        (changed(refs=[{"value": 1}]), r"nodes\[0\]"),
        (changed(refs=[3]), r"refs\[0\]"),
        (changed(refs=[{"keys": 3}]), r"refs\[0\].keys"),
        (changed(refs=[{"keys": ["a", "a", "b"]}]), "refs"),
        (changed(refs=[{"keys": ["a", "b", "c"], "order": [0, 1, 1]}]), "refs"),
        (changed(refs=[{"keys": ["a", "b", "c"], "order": [0, 1, 2**70]}]), "refs"),
        (changed(refs=[{"keys": ["a", "b", ["c"]]}]), r"refs\[0\]"),
        (changed(refs=[{"keys": ["a", "b", {"int": "1"}]}]), r"refs\[0\]"),
        (changed(refs=[{"keys": ["a", "b", {"str": "zz"}]}]), r"refs\[0\]"),
        (changed(refs=[{"keys": ["a", "b", {"bytes": "?"}]}]), r"refs\[0\]"),
        (changed(refs=[{"keys": ["a", "b", {"float": "0"}]}]), r"refs\[0\]"),
        (changed(refs=[{"keys": ["a", "b", {"str": 3}]}]), r"refs\[0\].*expected text, got int"),
        (changed(refs=[{"keys": ["a", "b", {"tuple": 3}]}]), r"refs\[0\].*written as a list"),
        (
            changed(refs=[{"keys": ["a", "b", {"int": "0x1", "str": ""}]}]),
            r"refs\[0\].*one field, got 2",
        ),
        (
            changed(refs=[{"keys": ["a", "b", "c"], "order": 3}]),
            r"refs\[0\]\.order: unexpected int",
        ),
        (changed(nodes=[["list", 1], None], none_is_leaf=True), r"nodes\[1\]: None can't be"),
        (changed(nodes=[3.5]), r"nodes\[0\]: expected a node"),
        (changed(nodes=[["list", {"class": "list"}]]), "nodes"),
        (changed(refs=[{"keys": ["a", "b", {"os.system": "0"}]}]), r"refs\[0\]"),
        (changed(refs=[{"keys": ["a", "b", {"class": "os.system"}]}]), r"refs\[0\].*os.system"),
    ],
    ids=lambda text: text[:60],
)
def test_malformed_text_names_the_field(text: str, field: str) -> None:
    """Malformed text is a ValueError that names the field, at once."""
    began = time.thread_time()
    with pytest.raises(ValueError, match=field):
        PyDagSpec.from_json(text)
    assert time.thread_time() - began < 1


def test_a_name_imports_nothing() -> None:
    """A factory is a builtin type or a registered class, never what a module happens to hold."""
    text = dag_structure(collections.defaultdict(list, a=1)).to_json()
    for name in ("os.system", "builtins.eval", "builtins.nothing", "subprocess.Popen"):
        with pytest.raises(ValueError, match=r"refs\[1\]"):
            PyDagSpec.from_json(text.replace("builtins.list", name))


@pytest.mark.parametrize(
    ("order", "said"),
    [(["a", "b"], "expected numbers"), ([0, 0], "must be a permutation")],
)
def test_an_order_that_is_none(order: Any, said: str) -> None:
    """An order of keys that is no order is an error."""
    document = json.loads(dag_structure({"b": 1, "a": 2}).to_json())
    next(ref for ref in document["refs"] if "keys" in ref)["order"] = order
    with pytest.raises(ValueError, match=said):
        PyDagSpec.from_json(json.dumps(document))


def test_a_namespace_that_is_none() -> None:
    """A namespace with a lone surrogate, which no structure has, is an error with its field."""
    document = json.loads(dag_structure(1).to_json())
    document["namespace"] = {"str": "\ud800".encode("utf-8", "surrogatepass").hex()}
    with pytest.raises(ValueError, match="namespace"):
        PyDagSpec.from_json(json.dumps(document))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"constant": "Nothing"}, "unknown constant"),
        ({"numpy.bool": 1}, "expected true or false"),
        ({"tuple": 3}, "written as a list"),
        ({"partial": [1, 2]}, "a list of three"),
        ({"partial": [1, {"tuple": []}, {"tuple": []}]}, "a partial has a function"),
    ],
)
def test_values_that_are_none(content: Any, said: str) -> None:
    """A value of a form that nothing is written in is an error."""
    with pytest.raises(ValueError, match=said):
        values.decode_leaf(content, None)


def test_what_is_no_text() -> None:
    """Bytes, as of a file that was opened so, are no JSON."""
    with pytest.raises(TypeError, match="expected text"):
        PyDagSpec.from_json(b"{}")  # type: ignore[arg-type]  # that is the mistake
