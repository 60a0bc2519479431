# SPDX-License-Identifier: Apache-2.0
"""What a file may build, and that it changes no value to fit: `pydag.files.load`."""

import abc
import collections
import json
import math
import struct
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

np = pytest.importorskip("numpy")
safetensors = pytest.importorskip("safetensors")
import optree
from safetensors.numpy import save_file

import pydag
from pydag.files import load, save
from pydag.files.save import STRUCTURE
from pydag.registry.optree_private import GLOBAL_NAMESPACE

ran: list[str] = []


@pytest.fixture
def path(tmp_path: Path) -> Path:
    ran.clear()
    return tmp_path / "model.safetensors"


def write(path: Path, header: Any, data: bytes = b"") -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def structured(
    path: Path, nodes: Any, refs: Any = (), leaves: Any = (), namespace: str = ""
) -> Path:
    """A file with such a structure, and no arrays."""
    document = {"pydag": 1, "none_is_leaf": False, "namespace": namespace}
    document |= {"nodes": nodes, "refs": list(refs)}
    whole = json.dumps({"pydag": 1, "structure": document, "leaves": list(leaves)})
    return write(path, {"__metadata__": {STRUCTURE: whole}})


def name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


class Recording:
    """Says when its own code runs."""

    def __init__(self, *children: Any, tag: Any = None) -> None:
        ran.append("__init__")
        self.children, self.tag = children, tag


def flatten(x: Any) -> Any:
    return x.children, x.tag


class OfPydag(Recording):
    pass


pydag.register_pydag_node(OfPydag, flatten, lambda tag, children: OfPydag(*children, tag=tag))


@pydag.register_pydag_node_class
class WithMethods(Recording):
    def tree_flatten(self) -> Any:
        return flatten(self)

    @classmethod
    def tree_unflatten(cls, tag: Any, children: Any) -> Any:
        return cls(*children, tag=tag)


class OfOptree(Recording):
    pass


register_with_optree: Any = optree.register_pytree_node  # typed for collections
register_with_optree(
    OfOptree,
    flatten,
    lambda tag, children: OfOptree(*children, tag=tag),
    namespace=GLOBAL_NAMESPACE,
)


class Point(NamedTuple):
    x: Any
    y: Any


@pydag.register_fields
class Dropped:
    def __del__(self) -> None:
        ran.append("__del__")


class Meta(type):
    def __hash__(cls) -> int:
        ran.append("__hash__")
        return 3


@pydag.register_fields
class Hashing(metaclass=Meta):
    pass


@pydag.register_fields
class Plain:
    pass


def custom(cls: type) -> Any:
    return [["custom", 0, 0, 1, 2]], [
        {"node": name(cls), "namespace": ""},
        {"value": None},
        {"value": None},
    ]


def fields(cls: type, **values: Any) -> Any:
    refs = [{"node": name(cls), "namespace": ""}, {"keys": [*values]}, {"value": {"tuple": []}}]
    return [["fields", len(values), 0, 1, 2], *["*"] * len(values)], refs


def defaultdict(factory: str) -> Any:
    return [["defaultdict", 0, 0, 1]], [{"keys": []}, {"factory": factory}]


@pytest.mark.parametrize(
    ("cls", "document"),
    [
        *((cls, custom(cls)) for cls in (OfPydag, WithMethods, OfOptree)),
        (Dropped, fields(Dropped)),
        (Hashing, ([["dict", 1, 0], None], [{"keys": [{"class": name(Hashing)}]}])),
        (OfPydag, ([["dict", 1, 0], None], [{"keys": [{"class": name(OfPydag)}]}])),
        (OfPydag, defaultdict(name(OfPydag))),
        (Plain, defaultdict(name(Plain))),
        (type, defaultdict("builtins.type")),
        (map, defaultdict("builtins.map")),
    ],
)
def test_a_class_with_code_is_refused(path: Path, cls: type, document: Any) -> None:
    """A class with code of its own is a ValueError with path, class and both cures; none runs."""
    structured(path, *document)
    with pytest.raises(ValueError, match=r"classes=\[") as caught:
        load(path)
    assert ran == []
    text = f"at tree: the file names classes that have code of their own: {name(cls)}\n"
    assert f"model.safetensors': {text}" in str(caught.value)
    assert "like=" in str(caught.value)
    assert load(path, classes=cls) is not None


@pytest.mark.parametrize("kind", ["namedtuple", "structseq"])
def test_tuples_with_names(path: Path, kind: str) -> None:
    """A namedtuple or struct sequence is built where its class is named, and not else."""
    tree = Point(1, 2) if kind == "namedtuple" else time.localtime(0)
    cls = type(tree)
    save(path, [tree])
    assert f'"{kind}"' in safetensors.safe_open(path, "np").metadata()[STRUCTURE].replace("\\", "")
    with pytest.raises(ValueError, match=f"{cls.__name__}.*classes="):
        load(path)
    (found,) = load(path, classes=cls)
    assert (type(found), found) == (cls, tree)


def test_a_class_that_is_a_leaf(path: Path) -> None:
    """A class of `register_fields` or a builtin one may be a value; another one must be named."""
    structured(path, ["*"], leaves=[{"value": {"class": name(Plain)}}])
    assert load(path) is Plain
    structured(path, ["*"], leaves=[{"value": {"class": name(OfPydag)}}])
    with pytest.raises(ValueError, match=r"in leaves\[0\]: .*OfPydag"):
        load(path)
    assert load(path, classes=OfPydag) is OfPydag


def test_the_classes_are_listed(path: Path) -> None:
    """One error lists all of the classes; a class, a list and a tuple of them are taken."""
    tree = [{"a": OfPydag(1.0)}, OfOptree(2.0), WithMethods(3.0)]
    save(path, tree)
    ran.clear()
    with pytest.raises(ValueError, match=r"at tree\[0\]\['a'\](?s:.)*=\[OfPydag, OfOptree, WithM"):
        load(path)
    with pytest.raises(ValueError, match=r"at tree\[0\]\['a'\](?s:.)*=\[OfPydag, WithMethods\]"):
        load(path, classes=OfOptree)
    assert ran == []
    for classes in ([OfPydag, OfOptree, WithMethods], (OfPydag, OfOptree, WithMethods)):
        found = load(path, classes=classes)
        assert pydag.dag_structure(found) == pydag.dag_structure(tree)
    assert pydag.dag_leaves(load(path, tree)) == [1.0, 2.0, 3.0]
    with pytest.raises(TypeError, match="classes= takes classes, got 'OfPydag'"):
        load(path, classes=["OfPydag"])  # type: ignore[list-item]  # that is the point


def test_fields_are_set_past_the_class(path: Path) -> None:
    """No function, property or metaclass of a class of `register_fields` has a say."""

    def noting(name: str) -> Any:
        return lambda *_: ran.append(name)

    meta = type("Calling", (type,), {"__call__": noting("__call__")})
    methods = ("new", "init", "post_init", "setattr", "getattribute")
    body = {f"__{name}__": noting(name) for name in methods}
    Everything: Any = meta("Everything", (), body | {"x": property(noting("x"), noting("x"))})  # noqa: N806  # a class
    Everything.__qualname__ = "test_fields_are_set_past_the_class.Everything"
    pydag.register_fields(Everything, meta_fields=("m",))
    structured(
        path,
        [["fields", 2, 0, 1, 2], "*", "*"],
        [
            {"node": name(Everything), "namespace": ""},
            {"keys": ["x", "__class__"]},
            {"value": {"tuple": ["meta"]}},
        ],
        [{"value": 1}, {"value": 2}],
    )
    found = load(path)
    assert ran == []
    assert type(found) is Everything
    assert object.__getattribute__(found, "__dict__") == {"x": 1, "__class__": 2, "m": "meta"}


def test_a_class_that_counts_as_two(path: Path) -> None:
    """A file can't pick the namespace in which a class is built by functions."""

    class Two(Recording):
        pass

    pydag.register_pydag_node(Two, flatten, lambda tag, children: Two(*children))
    pydag.register_fields(Two, namespace="untrusted")
    for written in ("", "untrusted"):
        nodes, refs = custom(Two)
        refs[0]["namespace"] = written
        structured(path, nodes, refs, namespace="untrusted")
        with pytest.raises(ValueError, match=r"own: .*Two|Unknown custom type"):
            load(path)
        assert ran == []
    pydag.unregister_pydag_node(Two)


class Abstract(abc.ABC):
    @abc.abstractmethod
    def f(self) -> None: ...


class Slotted:
    __slots__ = ("a",)


pydag.register_fields(Abstract)
pydag.register_fields(Slotted)


@pytest.mark.parametrize("cls", [Abstract, Slotted])
def test_an_object_that_cannot_be(path: Path, cls: type) -> None:
    """An object that can't be made, or can't have an attribute, is a ValueError with the file."""
    nodes, refs = fields(cls, b=1)
    structured(path, nodes, refs, [{"value": 1}])
    with pytest.raises(ValueError, match=r"model\.safetensors': an object can't be built"):
        load(path)


def test_factories(path: Path) -> None:
    """A builtin container or number may be a default factory."""
    for factory in (list, dict, set, int, float, bool, str, tuple, complex, frozenset, bytes):
        save(path, collections.defaultdict(factory))
        assert load(path).default_factory is factory


def test_from_json_runs_nothing() -> None:
    """`from_json` may name any registered class, and runs no code of it; `unflatten` does."""
    text = pydag.dag_structure([OfPydag(1, tag="x")]).to_json()
    ran.clear()
    spec = pydag.PyDagSpec.from_json(text)
    assert ran == []
    assert spec.unflatten([1])[0].tag == "x"
    assert ran == ["__init__"]
    key = pydag.dag_structure({Plain: 1}).to_json().replace("Plain", "Hashing")
    ran.clear()
    with pytest.raises(ValueError, match="Hashing"):
        pydag.PyDagSpec.from_json(key)
    assert ran == []


NUMBERS = [True, 3, 2**53 + 1, -(2**70), 1.9, 3.0, math.inf, math.nan, 1j, complex(math.inf, 0)]


@pytest.mark.parametrize("like", [False, 7, 0.5, 2j, "text", None, b"", np.bool_(False), range(3)])
@pytest.mark.parametrize("value", [*NUMBERS, "t", b"b", np.bool_(True), range(2)], ids=repr)
def test_values_keep_their_types(path: Path, value: Any, like: Any) -> None:
    """A value comes back exactly into a leaf of its type; any other is an error with both sides."""
    save(path, {"a": value})
    if like is None:
        assert load(path, {"a": None}) == {"a": None}  # no leaf
    elif type(value) is type(like):
        found = load(path, {"a": like})["a"]
        assert (type(found), repr(found)) == (type(value), repr(value))
    else:
        with pytest.raises(ValueError, match=r"(?s)'a' doesn't fit.*of <class.*like: .*of <class"):
            load(path, {"a": like}, strict=False)


@pytest.mark.parametrize("like", [False, 7, 0.5, 2j, "text", np.bool_(False), print])
@pytest.mark.parametrize(
    "array",
    [
        *(np.array(x) for x in (True, 3, 2**53 + 1, 1.9, 3.0, math.inf, math.nan)),
        *(np.complex64(1j), np.float16(0.1), np.uint8(255), np.ones(1), np.ones((), "i1")),
    ],
    ids=repr,
)
def test_arrays_for_numbers(path: Path, array: Any, like: Any) -> None:
    """An array without dimensions fits a number of its kind; else it is an error."""
    save_file({"a": np.asarray(array)}, path)
    kinds = {"b": (bool, np.bool_), "i": (int,), "u": (int,), "f": (float,), "c": (complex,)}
    if array.shape == () and type(like) in kinds[array.dtype.kind]:
        found = load(path, {"a": like})["a"]
        assert type(found) is type(like)
        assert np.asarray(found).astype(array.dtype).tobytes() == array.tobytes()
    else:
        with pytest.raises(ValueError, match=r"(?s)'a' doesn't fit.*\[.*\].*like: "):
            load(path, {"a": like}, strict=False)


def test_a_number_of_numpy_stays_one(path: Path) -> None:
    """With `like` a NumPy number comes back as what it was saved as."""
    save(path, {"a": np.float32(3)})
    assert type(load(path, {"a": np.float32(0)})["a"]) is np.float32


class Description:
    def __init__(self, dtype: Any) -> None:
        self._dtype = np.dtype(dtype)

    shape = ()
    dtype = property(lambda self: self._dtype)


def test_a_number_that_is_described(path: Path) -> None:
    """A number fits the description of an array of its kind, and no array."""
    save(path, {"a": 7})
    described: Any = {"a": Description("i4")}
    assert load(path, described) == {"a": 7}
    for like in (Description("f4"), Description("?"), np.zeros((), "i8"), np.int64(0)):
        with pytest.raises(ValueError, match=r"(?s)'a' doesn't fit `like`.*7, of <class 'int'>"):
            load(path, {"a": like})
    save(path, {"a": 1, "b": 2})
    shared = Description("i4")
    with pytest.raises(ValueError, match=r"(?s)'b' doesn't fit `like`.*2.*and elsewhere 1"):
        load(path, {"a": shared, "b": shared})


def test_classes_with_like(path: Path) -> None:
    """A class among the leaves is found among those of `like`; its name is no text for a leaf."""
    save(path, {"a": Plain, "b": [OfPydag]})
    found = load(path, {"a": Point, "b": [OfPydag]})
    assert found == {"a": Plain, "b": [OfPydag]}
    with pytest.raises(ValueError, match=r"'b\.0': the file names classes .*OfPydag"):
        load(path, {"a": Plain, "b": [Plain]})
    with pytest.raises(ValueError, match="'a' doesn't fit"):
        load(path, {"a": "text", "b": [OfPydag]})
    assert load(path, {"a": 3, "b": [4]}, only=lambda x: False) == {"a": 3, "b": [4]}


@pytest.mark.parametrize(
    ("header", "data", "words"),
    [
        ({"a": {"dtype": "BOOL", "shape": [3], "data_offsets": [0, 3]}}, b"\0\1\2", "0 or 1"),
        ({"a": {"dtype": "BOOL", "shape": [], "data_offsets": [0, 1]}}, b"\xff", "0 or 1"),
        ({"a": {"dtype": "F32", "shape": [0] + [1] * 70, "data_offsets": [0, 0]}}, b"", "'a'"),
        ({"a": {"dtype": "F32", "shape": [0, 2**63], "data_offsets": [0, 0]}}, b"", "'a'"),
        (
            b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
            b'"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
            bytes(8),
            "'a' stands twice",
        ),
        (b'{"__metadata__":{"a":"b","a":"c"}}', b"", "'a' stands twice|duplicate"),
    ],
)
def test_malformed_headers(path: Path, header: Any, data: bytes, words: str) -> None:
    """What NumPy can't hold, no boolean, and a name that stands twice are ValueErrors."""
    write(path, header, data)
    with pytest.raises(ValueError, match=words) as caught:
        load(path)
    assert "model.safetensors" in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        *("1e999", "-1e999", '{"complex":[1e999,0.0]}', '{"complex":[1,0.0]}'),
        *('{"complex":[{"int":"0x' + "f" * 400 + '"},1.0]}', '{"range":[0,1.0,1]}'),
        *('{"range":[0,1,0]}', '{"tuple":[],"tuple":[]}', "9" * 5000, '{"constant":["x"]}'),
    ],
    ids=lambda text: text[:20],
)
def test_malformed_values(path: Path, value: str) -> None:
    """A number beyond a float, and what else no value is, is a ValueError that says where."""
    whole = (
        '{"pydag":1,"structure":' + pydag.dag_structure(1).to_json() + ',"leaves":[{"value":%s}]}'
    )
    write(path, {"__metadata__": {STRUCTURE: whole % value}})
    for like in (None, 1):
        with pytest.raises(ValueError, match=r"model\.safetensors'"):
            load(path, like)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS .* git lfs pull"),
        (b"\x93NUMPY\1\0v\0{'descr': '<f8'}", "numpy.load"),
        (b"PK\3\4" + bytes(20), "zip file"),
        (b"GGUF" + bytes(20), "GGUF file"),
    ],
)
def test_files_of_other_formats(path: Path, data: bytes, words: str) -> None:
    """A file of another format is an error that says which format it has."""
    path.write_bytes(data)
    with pytest.raises(ValueError, match=f"no whole safetensors file: .*\n.*{words}"):
        load(path)
