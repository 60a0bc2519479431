# SPDX-License-Identifier: Apache-2.0
"""`pj.view`, and the table in docs/what_is_it.md: both say what the wrappers do."""

import collections
import dataclasses
import enum
import functools
import operator
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.experimental import hijax

import pydag
import pydag.jaxinterop as pj

PAGE = Path(__file__).parents[2] / "docs" / "what_is_it.md"
X = jnp.ones(2)
Partial: Any = jax.tree_util.Partial
Described: Any = jax.ShapeDtypeStruct


class Model(pj.Module):
    """A module that holds one thing."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def method(self) -> None:
        """What is bound to a module."""


@pydag.register_fields
class Record:
    """A record that holds one thing."""

    def __init__(self, held: Any) -> None:
        self.held = held


@dataclasses.dataclass
class Plain:
    """A dataclass that is not registered."""

    held: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    """The same, frozen."""

    held: Any


@pydag.register_fields
@dataclasses.dataclass(frozen=True)
class Registered:
    """A frozen dataclass that is registered."""

    held: Any


@pydag.register_fields
@dataclasses.dataclass
class WithStatic:
    """A registered dataclass with a static field."""

    held: Any
    rate: float = dataclasses.field(metadata={"static": True}, default=0.1)


class Value:
    """It says that it is a value, by both methods."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value)

    def __hash__(self) -> int:
        return 1


class Parameter:
    """An object that says how to make an array of it."""

    def __jax_array__(self) -> Any:
        return X


class Lazy(pj.Module):
    """A module with a stored property, and one that is computed."""

    def __init__(self) -> None:
        self.held = array()
        _ = self.norm

    @functools.cached_property
    def norm(self) -> float:
        """What a rebuilt model computes again."""
        return 2.0

    @property
    def half(self) -> Any:
        """What is computed each time."""
        return self.held / 2


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Static:
    """A class that JAX takes for structure."""

    rate: float = 0.1


class Pair(NamedTuple):
    """A namedtuple."""

    held: Any


class Color(enum.Enum):
    """An enumeration."""

    RED = 1


@dataclasses.dataclass(frozen=True)
class Halves:
    """Two arrays that JAX sees as one value."""

    hi: Any
    lo: Any


@dataclasses.dataclass(frozen=True)
class HalvesType(hijax.HiType):
    """JAX's type of these."""

    def lo_ty(self) -> Any:
        return [hijax.ShapedArray((2,), jnp.dtype("float32"))] * 2

    def lower_val(self, value: Any) -> Any:
        return [value.hi, value.lo]

    def raise_val(self, hi: Any, lo: Any) -> Any:
        return Halves(hi, lo)

    def to_tangent_aval(self) -> Any:
        return hijax.ShapedArray((2,), jnp.dtype("float32"))


hijax.register_hitype(Halves, lambda x: HalvesType())


def array() -> Any:
    """An array of its own."""
    return jnp.ones(2)


def same(tree: Any) -> Any:
    """The object itself."""
    return tree


held: Callable[[Any], Any] = operator.attrgetter("held")
first: Callable[[Any], Any] = operator.itemgetter(0)
Way = Callable[[Any], Any]

# What makes an object, what holds it, and the place of its leaf in that.
KINDS: dict[str, tuple[Callable[[], Any], Way, Way]] = {
    "complex": (lambda: np.ones(2, "complex64"), same, same),
    "floats": (array, same, same),
    "hijax": (lambda: Halves(X, X), same, same),
    "integers": (lambda: jnp.arange(2), same, same),
    "flags": (lambda: np.array([True]), same, same),
    "key": (lambda: jax.random.key(0), same, same),
    "ref": (lambda: jax.new_ref(X), same, same),
    "array of text": (lambda: np.array(["a"]), same, same),
    "array of objects": (lambda: np.array([None]), same, same),
    "array of dates": (lambda: np.array(["2020"], "M8[D]"), same, same),
    "longdouble": (lambda: np.ones(2, "longdouble"), same, same),
    "masked": (lambda: np.ma.array([1.0]), same, same),
    "by a method": (Parameter, same, same),
    "large": (lambda: 2**40, same, same),
    "float": (lambda: 0.5, same, same),
    "float in a record": (lambda: 0.5, Record, held),
    "complex number in a dict": (lambda: 2j, lambda x: {"a": x}, operator.itemgetter("a")),
    "integer": (lambda: 2, Record, held),
    "flag": (lambda: True, lambda x: [x], first),
    "in a module": (lambda: 0.5, Model, held),
    "in a list of a module": (lambda: 0.5, lambda x: Model([x]), lambda t: t.held[0]),
    "in a module in a record": (lambda: 3, lambda x: Record(Model(x)), lambda t: t.held.held),
    "of NumPy in a module": (lambda: np.float32(2), Model, held),
    "in a record in a module": (lambda: 0.5, lambda x: Model(Record(x)), lambda t: t.held.held),
    "without dimensions": (lambda: np.array(0.5), Model, held),
    "None": (lambda: None, same, same),
    "register_static": (Static, same, same),
    "text": (lambda: "text", Model, held),
    "bytes": (lambda: b"bytes", same, same),
    "enum member": (lambda: Color.RED, same, same),
    "dtype": (lambda: np.dtype("int8"), same, same),
    "mesh": (lambda: jax.make_mesh((1,), ("a",)), same, same),
    "function": (lambda: max, same, same),
    "class": (lambda: Model, same, same),
    "frozenset": (lambda: frozenset({1}), same, same),
    "partial": (lambda: functools.partial(max, 1), same, same),
    "frozen dataclass": (lambda: Frozen(1), same, same),
    "with both methods": (Value, same, same),
    "frozenset of objects": (lambda: frozenset([Model(1)]), same, same),
    "partial of an array": (lambda: functools.partial(max, X), same, same),
    "frozen dataclass with an array": (lambda: Frozen(X), same, same),
    "dataclass": (lambda: Plain(1), same, same),
    "method": (lambda: Model(X).method, same, same),
    "set": (lambda: {1}, same, same),
    "bytearray": (lambda: bytearray(b"a"), same, same),
    "iterator": (lambda: iter([X]), same, same),
    "view": (lambda: {"a": X}.values(), same, same),
    "object": (object, same, same),
    "deque": (lambda: collections.deque([array()]), same, first),
    "namedtuple": (lambda: Pair(array()), same, first),
    "module": (lambda: Model(array()), same, held),
    "frozen dataclass, registered": (lambda: Registered(array()), same, held),
    "equinox": (lambda: eqx.nn.PReLU(0.5), same, operator.attrgetter("negative_slope")),
    "nnx.Param": (lambda: nnx.Param(array()), same, lambda t: t.get_value()),
    "Partial": (lambda: Partial(max, array()), same, lambda t: t.args[0]),
    "Derived": (lambda: pj.Derived(jnp.sin, array()), same, lambda t: t.sources[0]),
    "BatchStat": (lambda: nnx.BatchStat(array()), same, lambda t: t.get_value()),
}  # fmt: skip
WITHOUT_LEAVES = {"None", "register_static"}
OF_JAX = {"masked", "large"}  # refused by JAX, in its own words
ROWS = {  # of the page
    "array of floats or complex numbers; value of a hijax type": "complex|floats|hijax",
    "array of integers or flags; random key": "integers|flags|key",
    "ref": "ref",
    "NumPy array of text, objects, dates, `longdouble`; masked array; object with `__jax_array__`; "
    "integer beyond 32 bits that is data": (
        "array of text|array of objects|array of dates|longdouble|masked|by a method|large"
    ),
    "float in a dict, a record, or bare": "float|float in a record|complex number in a dict",
    "integer or flag there": "integer|flag",
    "number in a module, in its lists and dicts, in a module in a record; scalar of NumPy there": (
        "in a module|in a list of a module|in a module in a record|of NumPy in a module"
    ),
    "number in a record in a module; array without dimensions": (
        "in a record in a module|without dimensions"
    ),
    "None; instance of a class of `jax.tree_util.register_static`": "None|register_static",
    "text, bytes, enum member, dtype, mesh, function, class": (
        "text|bytes|enum member|dtype|mesh|function|class"
    ),
    "frozenset, `functools.partial`, frozen dataclass of values; object with `__eq__` and "
    "`__hash__`": "frozenset|partial|frozen dataclass|with both methods",
    "the same of arrays or modules; any other dataclass or object; bound method, set, `bytearray`, "
    "iterator, view": (
        "frozenset of objects|partial of an array|frozen dataclass with an array|dataclass|method|"
        "set|bytearray|iterator|view|object"
    ),
    "list, tuple, dict, deque, namedtuple; registered class, equinox, `nnx.Param`; "
    "`jax.tree_util.Partial`, `pj.Derived`": (
        "deque|namedtuple|module|frozen dataclass, registered|equinox|nnx.Param|Partial|Derived"
    ),
    "another Variable of NNX": "BatchStat",
}


def words(view: pydag.View) -> list[str]:
    """What a view says of leaves and nodes."""
    return re.findall(r" — (.*)$", str(view), re.MULTILINE)


def cures(view: pydag.View) -> list[str]:
    """What to do instead of all that is refused."""
    return re.findall(r"^refused at tree\S*(?: and \d+ more)?: (.*)$", str(view), re.MULTILINE)


def cure_of(function: Callable[..., Any], tree: Any) -> str | None:
    """The last line of the error that a wrapper raises about a tree; None if it raises none."""
    try:
        function(tree)
    except (TypeError, ValueError, OverflowError) as error:
        return str(error).rpartition("\n")[2].strip()
    return None


def loss(tree: Any) -> Any:
    return (tree["w"] * 2.0).sum()


def tree_of(kind: str) -> dict[str, Any]:
    """An object of this kind, beside an array."""
    make, hold, _ = KINDS[kind]
    return {"w": X, "x": hold(make())}


def observed(kind: str) -> tuple[str, str, str]:
    """How pydag opens an object, what `pj.jit` does with its leaf, and `pj.grad`."""
    make, _, read = KINDS[kind]
    opened = "leaf" if pydag.dag_is_leaf(make()) else "node"
    if cure_of(pj.jit(loss), tree_of(kind)) is not None:
        return opened, "refused", ""
    seen: list[Any] = []
    jaxpr = pj.make_jaxpr(lambda tree: seen.append(read(tree["x"])))(tree_of(kind))
    is_input = len(jaxpr.in_avals) == 2
    is_tracer = isinstance(seen[0], jax.core.Tracer)
    gradient = pj.grad(loss)(tree_of(kind))["x"]
    gradient = None if gradient is None else read(gradient)
    if not is_input:
        assert not is_tracer
        assert gradient is None or gradient == seen[0]
        return opened, "static", "no"
    assert is_tracer
    selected = pj.grad(loss, wrt="**")(tree_of(kind))["x"]
    by_choice = "no" if selected is None or read(selected) is None else "by `wrt=`"
    return opened, "traced", by_choice if gradient is None else "yes"


SAID = {
    ("traced", "yes"): "traced, derivative",
    ("traced", "no"): "traced, no derivative",
    ("traced", "by `wrt=`"): "traced, state",
    ("refused", ""): "refused",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_view_says_what_the_wrappers_do(kind: str) -> None:
    """What is called traced is an input, what has a derivative gets one, what is refused raises."""
    _, by_jit, by_grad = observed(kind)
    tree = tree_of(kind)
    view = pj.view(tree)
    said = words(view)
    assert said.pop(0) == "traced, derivative"  # of `w`
    if kind in WITHOUT_LEAVES:
        assert said == []
    elif by_jit == "static":
        assert said == [
            "configuration" if isinstance(tree["x"], Model | Record) else "static value"
        ]
    elif kind in ("key", "ref"):
        assert said == [kind]
    else:
        assert said == [SAID[by_jit, by_grad]]
    assert len(cures(view)) == (by_jit == "refused")
    if by_jit == "refused" and kind not in OF_JAX:
        for wrapper in (pj.jit, pj.grad, pj.make_jaxpr):
            assert cure_of(wrapper(loss), tree_of(kind)) == cures(view)[0]


def kinds_of(row: str) -> list[str]:
    """The kinds in a row."""
    return ROWS[row].split("|")


def test_the_table_of_the_page() -> None:
    """Its rows are about what is tried here, all of it, and each cell says what is observed."""
    found = re.findall(r"^\| (.*?) \| (.*?) \| (.*?) \|(?: (.*?) \|)?$", PAGE.read_text(), re.M)
    stated = {name: tuple(cells) for name, *cells in found[1:]}
    observed_ = {row: {observed(kind) for kind in kinds_of(row)} for row in ROWS}
    ends = {row: {cells} for row, cells in stated.items() if row not in DESCRIPTORS}
    assert ends == observed_
    assert {row: stated[row] for row in DESCRIPTORS} == DESCRIPTORS
    assert sorted(kind for row in ROWS for kind in kinds_of(row)) == sorted(KINDS)


DESCRIPTORS = {
    "static or meta field": ("no leaf", "static", "no"),
    "what a `property` or a `cached_property` gives": ("no leaf", "computed again", ""),
}


def test_fields_and_descriptors() -> None:
    """The last rows: a static field is compared; of descriptors nothing is, nor is it kept."""
    assert len(pydag.dag_leaves(WithStatic(X))) == len(pydag.dag_leaves(Lazy())) == 1
    traces: list[Any] = []

    @pj.jit
    def norm_of(lazy: Lazy) -> float:
        traces.append("norm" in vars(lazy))
        return lazy.norm

    for norm in (2.0, 3.0):
        lazy = Lazy()
        lazy.norm = norm
        assert norm_of(lazy) == 2.0
    assert traces == [False]
    compiled = pj.jit(lambda tree: traces.append(tree.rate))
    compiled(WithStatic(X))
    compiled(WithStatic(X, 0.2))
    assert traces == [False, 0.1, 0.2]


MODULE: Any = eqx.nn.MLP(2, 2, 4, 1, key=jax.random.key(0))


class Net(nnx.Module):
    """A module of NNX with state, a tie and configuration."""

    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.linear, self.norm = nnx.Linear(2, 2, rngs=rngs), nnx.BatchNorm(2, rngs=rngs)
        self.dropout, self.tied, self.rate = nnx.Dropout(0.5, rngs=rngs), self.linear, 0.5


def sixty() -> Any:
    """A list within lists, two of it in each."""
    tree: Any = X
    for _ in range(60):
        tree = [tree, tree]
    return tree


ODD: dict[str, Callable[[], Any]] = {
    "equinox": lambda: MODULE,
    "nnx": Net,
    "a Dag": lambda: pj.Dag({"a": X, "b": X, "c": "text"}),
    "a Dag in a module": lambda: Model(pj.Dag({"a": X, "n": 1})),
    "what linearize made": lambda: jax.linearize(jnp.sin, 1.0)[1],
    "sixty levels": sixty,
    "shapes": lambda: {"a": Described((2,), "float32"), "b": 1},
    "a list in a module and a tuple": lambda: (lambda n: (Model(n), n))([X, "text"]),
    "a partial of a partial": lambda: Partial(functools.partial(max, 1), X, k=2.0),
    "arrays of few bits": lambda: [jnp.ones(2, name) for name in ("int4", "float8_e4m3fn", "bool")],
    "Derived within Derived": lambda: pj.Derived(jnp.sin, pj.Derived(jnp.sin, X)),
    "subclasses of numbers": lambda: [type("Real", (float,), {})(2.0), np.float16(1), np.bool_(1)],
    "dates": lambda: [np.datetime64("2020"), np.timedelta64(1, "D")],
    "subclasses of arrays": lambda: [np.zeros(2).view(np.recarray)],
    "a leaf": lambda: X,
    "nothing": dict,
}


def check(tree: Any) -> None:
    """Checks a whole view against the wrappers."""
    view = pj.view({"w": X, "x": tree}, limit=None)
    said = collections.Counter(words(view))
    for wrapper in (pj.jit, pj.make_jaxpr):
        cure = cure_of(wrapper(loss), {"w": X, "x": tree})
        assert cure in cures(view) if said["refused"] else cure is None
    if said["refused"]:
        return
    traced = sum(said[word] for word in (*SAID.values(), "key", "ref"))
    assert len(pj.make_jaxpr(loss)({"w": X, "x": tree}).in_avals) == traced
    gradient = pj.grad(loss)({"w": X, "x": tree})
    assert len(pj.tree.leaves(gradient)) == said["traced, derivative"]


@pytest.mark.parametrize("name", ODD)
def test_odd_trees(name: str) -> None:
    """As many are called traced as are inputs; as many with a derivative as a gradient has."""
    check(ODD[name]())


@pytest.mark.parametrize("seed", range(30))
def test_trees_at_random(seed: int) -> None:
    """The same for trees of all these kinds, in containers, modules and records."""
    rng = random.Random(seed)
    kinds = [lambda kind=kind: tree_of(kind)["x"] for kind in KINDS if kind not in OF_JAX]

    def tree(depth: int) -> Any:
        if depth == 0 or rng.random() < 0.2:
            made = rng.choice(kinds)()
            is_kept = seed % 3 == 0 or cure_of(pj.jit(loss), {"x": made, "w": X}) is None
            return made if is_kept else 1.0
        parts = [tree(depth - 1) for _ in range(rng.randrange(1, 4))]
        holders: list[Callable[[Any], Any]] = [Model, Record, list, tuple, Pair, Registered]
        return rng.choice(holders)(parts)

    check(tree(3))


def test_what_static_selects_is_a_constant() -> None:
    """What `static=` selects is no input; to select nothing, or an array, raises an error."""
    tree = {"n": 3, "m": 2, "w": X}
    assert words(pj.view(tree, static="*n*")) == [
        "traced, no derivative", "constant", "traced, derivative"
    ]  # fmt: skip
    assert len(pj.make_jaxpr(loss, static="*n*")(tree).in_avals) == 2
    with pytest.raises(ValueError, match="no path matches"):
        pj.view(tree, static="*k*")
    with pytest.raises(TypeError) as caught:
        pj.jit(loss, static="*w*")(tree)
    assert cures(pj.view(tree, static="*w*")) == [str(caught.value).rpartition("\n")[2].strip()]


def test_a_number_of_two_owners_is_refused() -> None:
    """A number that is a module's and a dict's is refused once, with the cure of the error."""
    numbers = [1]
    tree = {"a": Model(numbers), "b": numbers, "w": X}
    view = pj.view(tree)
    assert words(view) == ["refused", "traced, derivative"]
    assert cures(view) == [cure_of(pj.jit(loss), tree)]


def test_equal_cures_are_said_once() -> None:
    """The first path stands for all, and the others are counted."""
    view = pj.view([object(), {1}, object(), object()])
    assert "\nrefused at tree[0] and 2 more: " in str(view)
    assert "\nrefused at tree[1]: Pass a frozenset." in str(view)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Partial(Model(X).method, array()),
        lambda: WithStatic(array(), Registered(X)),  # type: ignore[arg-type]  # a mistake
    ],
)
def test_what_nodes_hold_is_shown_where_it_is_refused(make: Callable[[], Any]) -> None:
    """The function of a partial, and an object with an array in a meta field, are the node's."""
    tree = {"w": X, "x": make()}
    view = pj.view(tree)
    assert words(view) == ["traced, derivative", "refused", "traced, derivative"]
    assert cures(view) == [cure_of(pj.jit(loss), tree)]


def test_what_no_function_can_flatten_raises_here_too() -> None:
    """An array in a meta field, and a cycle, are the errors that `pydag.view` raises."""
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(pydag.CycleError):
        pj.view(loop)
    cls = pydag.register_fields(type("Meta", (Plain,), {}), (), ("held",))
    with pytest.raises(TypeError, match="Make the field a data field"):
        pj.view(cls(X))


def test_a_view_has_all_forms() -> None:
    """Words and cures are in the HTML and the drawing; the bounds are those of `pydag.view`."""
    view = pj.view({"a": {1}, "b": X, "long": "x" * 200}, width=40)
    html = view._repr_html_()
    assert "— refused" in html
    assert "refused at tree[&#x27;a&#x27;]: Pass a frozenset." in html
    assert "f32[2] — traced, derivative" in view.dot()
    lines = str(view).splitlines()
    assert lines[3].endswith("… — static value")
    assert len(lines[3]) == 40
    assert str(pj.view({"a": [X]}, depth=1)).splitlines()[1] == "└─ ['a']: list … 1 more objects"
    with pytest.raises(ValueError, match="width"):
        pj.view(X, width=1)


def test_a_view_inside_of_a_function() -> None:
    """Tracers are shown as the arrays that they stand for."""
    seen: list[str] = []
    pj.jit(lambda tree: seen.extend(words(pj.view(tree))))({"w": X, "n": 1, "t": "text"})
    assert sorted(seen) == ["static value", "traced, derivative", "traced, no derivative"]


def test_dates_are_static_in_programs_too() -> None:
    """A scalar of NumPy's of a dtype that JAX lacks is static to `make_jaxpr`, as to `jit`."""
    date = np.datetime64("2020")
    assert pj.make_jaxpr(lambda t: None)({"a": date, "w": X}).in_avals != []
    assert len(pj.make_jaxpr(lambda t: None)({"a": date, "w": X}).in_avals) == 1
    assert pj.eval_shape(lambda t: t, date) == date


def test_a_dtype_that_jax_lacks_is_refused_whatever_was_called_before() -> None:
    """After a call with floats, where the core knows the structure, the error has the same cure."""
    compiled = pj.jit(loss)
    compiled({"x": np.ones(2), "w": X})
    for array_ in (np.array(["a"]), np.ones(2, "longdouble"), np.array([None])):
        assert cure_of(compiled, {"x": array_, "w": X}) == cures(pj.view(array_))[0]
    with pytest.raises(TypeError, match="of the function"):
        pj.jit(fails)(X)


def fails(x: Any) -> Any:
    raise TypeError("of the function")
