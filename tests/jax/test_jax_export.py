# SPDX-License-Identifier: Apache-2.0
"""`jax.export` of compiled functions: arguments and results as the user has them."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar, cast

import jax
import jax.numpy as jnp
import pytest
from jax import export
from small_models import tied_under

import pydag
import pydag.jaxinterop as pj
from pydag.jaxinterop.static.untraced import Untraced

struct: Any = jax.ShapeDtypeStruct
jit: Any = pj.jit  # the type of what it returns isn't that of JAX's
export_of: Any = export.export


tied = tied_under("a", "b", lambda: jnp.array([[1.0, 2.0], [3.0, 4.0]]))


def product(params: Any, x: Any) -> Any:
    """What is one object outside is one object inside."""
    assert params["a"] is params["b"]
    return params["a"] @ x + params["b"] @ x


def exported(fun: Any, *args: Any, **kwargs: Any) -> Any:
    return export_of(jit(fun))(*args, **kwargs)


X = jnp.array([1.0, 10.0])


def test_arguments_as_the_user_has_them() -> None:
    """The exported function takes the trees that the compiled one takes, and gives the same."""
    made = exported(product, tied(), X)
    assert made.call(tied(), X).tolist() == [42.0, 86.0]
    assert made.fun_name == "product"
    assert made.in_tree == jax.tree.structure(((tied(), X), {}))
    assert [aval.shape for aval in made.in_avals] == [(2, 2), (2, 2), (2,)]


def test_shapes_in_place_of_arrays() -> None:
    """Shapes are enough; one that stands at two places is one array."""
    w = struct((2, 2), "float32")
    made = exported(product, {"a": w, "b": w}, struct((2,), "float32"))
    assert made.call(tied(), X).tolist() == [42.0, 86.0]


def test_symbolic_shapes() -> None:
    """Dimensions may be left open."""
    rows, columns = export.symbolic_shape("rows, columns")
    w = struct((rows, columns), "float32")
    made = exported(product, {"a": w, "b": w}, struct((columns,), "float32"))
    ones = jnp.ones((3, 2))
    assert made.call({"a": ones, "b": ones}, X).tolist() == [22.0, 22.0, 22.0]


def test_results_that_share() -> None:
    """What is one object in the result comes out as one, static leaves where they were."""

    def f(params: Any) -> Any:
        y = 2 * params["a"]
        return {"one": y, "two": [y, params["b"]], "name": "net"}

    for made in (exported(f, tied()), round_trip(exported(f, tied()))):
        out = made.call(tied())
        assert out["one"] is out["two"][0]
        assert out["two"][1].tolist() == [[1.0, 2.0], [3.0, 4.0]]
        assert out["name"] == "net"


def round_trip(made: Any) -> Any:
    """Written and read again."""
    pytest.importorskip("flatbuffers")
    return export.deserialize(made.serialize(vjp_order=1))


def test_results_that_do_not_share_are_plain() -> None:
    """Their structure is JAX's own, so that whoever reads them needs no pydag."""
    made = exported(lambda p: {"out": [p["a"] + 1]}, tied())
    assert made.out_tree == jax.tree.structure({"out": [1.0]})


READER = """
import sys
import jax
from jax import export
made = export.deserialize(bytearray(open(sys.argv[1], "rb").read()))
w = jax.numpy.ones((2, 2))
print(made.call({"a": w, "b": w})["out"][0].tolist(), "pydag" in sys.modules)
"""


def test_read_without_pydag(tmp_path: Path) -> None:
    """A function of dicts that returns a dict runs in a process that has never heard of us."""
    pytest.importorskip("flatbuffers")
    made = exported(lambda p: {"out": [p["a"] + p["b"]]}, tied())
    (tmp_path / "made").write_bytes(made.serialize())
    done = subprocess.run(
        [sys.executable, "-c", READER, str(tmp_path / "made")], capture_output=True, text=True
    )
    assert done.stdout.split("\n")[0] == "[[2.0, 2.0], [2.0, 2.0]] False", done.stderr


def test_derivatives() -> None:
    """An exported function is differentiated; a shared argument has the sum, at all its places."""
    for made in (exported(product, tied(), X), round_trip(exported(product, tied(), X))):
        gradient = pj.grad(lambda p, made=made: made.call(p, X).sum())(tied())
        assert gradient["a"] is gradient["b"]
        assert gradient["a"].tolist() == [[2.0, 20.0], [2.0, 20.0]]


def test_inside_of_other_transformations() -> None:
    """It is called from compiled functions, ours and JAX's."""
    made = exported(product, tied(), X)
    for compiled in (jax.jit, pj.jit):
        assert compiled(lambda p, x: made.call(p, x))(tied(), X).tolist() == [42.0, 86.0]
    assert exported(made.call, tied(), X).call(tied(), X).tolist() == [42.0, 86.0]


def test_static_arguments() -> None:
    """They are left out, as JAX does."""

    def f(times: Any, params: Any, *, plus: Any, y: Any) -> Any:
        return times * params["a"][0] + plus + y

    jitted = jit(f, static_argnums=0, static_argnames="plus")
    made = export_of(jitted)(3, tied(), plus=5, y=X)
    assert made.call(tied(), y=X).tolist() == [9.0, 21.0]


def test_donated_arguments() -> None:
    """What is donated and what is kept come back to their places."""
    jitted = jit(lambda p, x, y: (p["a"] @ x, y), donate_argnums=(0, 2))
    made = export_of(jitted)(tied(), X, 2 * X)
    first, second = made.call(tied(), X, 2 * X)
    assert (first.tolist(), second.tolist()) == ([21.0, 43.0], [2.0, 20.0])


def test_shardings() -> None:
    """Those of arguments and results are written down as for JAX's functions."""
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    spec: Any = jax.sharding.PartitionSpec
    here, there = (jax.sharding.NamedSharding(mesh, spec(*names)) for names in ((), ("x",)))

    def f(params: Any, x: Any) -> Any:
        y = params["a"] @ x
        return {"one": y, "two": (y + 1, x)}

    trees: Any = {"in_shardings": (here, there)}
    trees["out_shardings"] = {"one": here, "two": (here, there)}
    for options in (trees, {"in_shardings": here, "out_shardings": there}):
        mine, theirs = (export_of(j(f, **options))(tied(), X) for j in (jit, jax.jit))
        assert mine.in_shardings_jax(mesh) == theirs.in_shardings_jax(mesh)
        assert mine.out_shardings_jax(mesh) == theirs.out_shardings_jax(mesh)

    def shared(params: Any, x: Any) -> Any:
        y = params["a"] @ x
        return {"one": y, "two": (y, x)}

    trees["out_shardings"] = {"one": here, "two": here}
    out = export_of(jit(shared, **trees))(tied(), X).call(tied(), X)
    assert out["one"] is out["two"][0]
    assert out["two"][1].tolist() == [1.0, 10.0]


def test_traced_once() -> None:
    """The function is traced once, however often it is passed on."""
    traces = []

    def f(params: Any) -> Any:
        traces.append(params)
        return params["a"]

    exported(f, tied())
    assert len(traces) == 1


def test_a_function_that_nobody_keeps() -> None:
    """What is exported outlives the function."""
    made = exported(lambda p: 2 * p["a"][0], tied())
    assert round_trip(made).call(tied()).tolist() == [2.0, 4.0]
    assert made.call(tied()).tolist() == [2.0, 4.0]


@pydag.register_fields
class Layer:
    """A class that JAX doesn't know."""

    def __init__(self, w: Any, name: str) -> None:
        self.w, self.name = w, name


@pj.register
@pydag.register_fields
class Known(Layer):
    """A class that JAX opens, too."""


def test_classes_of_ours() -> None:
    """A registered class goes in and comes out; what JAX can't open raises, with path and cure."""
    made = exported(lambda p: {"out": Known(2 * p["in"].w, "out")}, {"in": Known(X, "in")})
    out = made.call({"in": Known(X + 1, "in")})["out"]
    assert (type(out), out.name, out.w.tolist()) == (Known, "out", [4.0, 22.0])
    with pytest.raises(TypeError) as caught:
        exported(lambda p: p["in"].w, {"in": Layer(X, "in")})
    assert str(caught.value) == (
        "args[0]['in'] is no array, but an object of type Layer, and an exported function is "
        "called by JAX, which takes arrays and what it knows how to open\n"
        "  Let JAX open it, too: pydag.jaxinterop.register(Layer)."
    )
    with pytest.raises(TypeError, match=r"^kwargs\['p'\]\['name'\] is no array, but .* type str"):
        exported(lambda p: p["w"], p={"w": X, "name": "net"})


class Model(pj.Module):
    """A module with tied weights, a number and functions."""

    def __init__(self, w: Any, act: Any = jax.nn.gelu) -> None:
        self.embed = self.head = w
        self.act, self.dtype, self.depth = act, jnp.float32, 2


def test_modules() -> None:
    """A `pj.Module` goes through a file, in and out, with its ties, numbers and functions."""
    made = round_trip(exported(lambda m: (m, m.act(m.embed)), Model(X)))
    assert made.in_tree == jax.tree.structure(((Model(X),), {}))
    out, y = made.call(Model(2 * X))
    assert type(out) is Model
    assert out.embed is out.head
    assert out.embed.tolist() == [2.0, 20.0]
    assert (out.act, out.dtype, out.depth) == (jax.nn.gelu, jnp.float32, 2)
    assert y.tolist() == jax.nn.gelu(2 * X).tolist()


def test_what_has_no_name() -> None:
    """A function that can't be found by its name is refused when it is written, with its path."""
    made = exported(lambda m: m.embed, Model(X, lambda x: x))
    with pytest.raises(TypeError) as caught:
        made.serialize()
    assert str(caught.value).startswith(
        "what is exported can't be written down\n  at tree.act: an object of <class 'function'>\n"
    )


def test_a_class_that_is_defined_anew() -> None:
    """The class that was defined last under a name is the one that is found."""

    def define() -> Any:
        class Again(pj.Module):
            def __init__(self) -> None:
                self.w = X

        return Again

    define()
    last = define()
    made = round_trip(exported(lambda m: m, last()))
    assert type(made.call(last())) is last


class Counted:
    """A class with functions of its own."""

    built: ClassVar[int] = 0

    def __init__(self, w: Any) -> None:
        self.w = w
        Counted.built += 1


def test_reading_runs_no_code() -> None:
    """Nothing is unpickled, no module imported, no function of a class called."""
    with contextlib.suppress(ValueError):
        pydag.register_pydag_node(Counted, lambda c: ((c.w,), None), lambda _, c: Counted(*c))
        pj.register(Counted)
    data = exported(lambda c: c, Counted(X)).serialize()
    before = Counted.built
    made = cast(Any, export.deserialize(data))
    assert Counted.built == before
    assert made.call(Counted(2 * X)).w.tolist() == [2.0, 20.0]


@pytest.mark.parametrize(
    "name", ["os:system", "builtins:eval", "antigravity:fly", "subprocess:Popen.wait", "jax:no.pe"]
)
def test_functions_that_are_not_the_models(name: str) -> None:
    """A function is found in JAX and in modules with registered classes; nothing is imported."""
    _, structure = cast(Any, jax.tree.structure(Model(X))).node_data()
    data = structure.written()
    assert Untraced.read(data) == structure
    assert b"jax._src.nn.functions:gelu" in data
    with pytest.raises(ValueError, match=f"^no loaded module has '{name}'"):
        Untraced.read(data.replace(b"jax._src.nn.functions:gelu", name.encode()))
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"positions":[0,', b'"positions":[9,'),
        (b'"positions":[0,', b'"positions":[4,'),
        (b'"identity":"all"', b'"identity":"any"'),
        (b'"identity"', b'"identitx"'),
        (b'"statics":[{"fun', b'"statics":[{"fux'),
        (b'{"pydag":1,', b'{"pydag":9,'),
    ],
)
def test_damaged_structures(old: bytes, new: bytes) -> None:
    """What somebody changed in the text is a ValueError."""
    data = bytes(exported(lambda m: m, Model(X)).serialize())
    assert old in data
    with pytest.raises(ValueError, match=r"^malformed structure|unknown kind of value"):
        export.deserialize(bytearray(data.replace(old, new)))


def test_dags() -> None:
    """A Dag is a way to pass what JAX can't open, and to pass each array once."""

    def f(dag: Any) -> Any:
        assert dag.tree[0] is dag.tree[1]
        return pj.Dag([layer := Layer(dag.tree[0].w + 1, "out"), layer])

    def given() -> Any:
        return pj.Dag([layer := Layer(X, "in"), layer])

    for made in (exported(f, given()), round_trip(exported(f, given()))):
        assert len(made.in_avals) == 1
        out = made.call(given()).tree
        assert out[0] is out[1]
        assert (out[0].name, out[0].w.tolist()) == ("out", [2.0, 11.0])


def test_other_structure() -> None:
    """JAX refuses it, with the path."""
    made = exported(product, tied(), X)
    with pytest.raises(ValueError, match=r"args\[0\] is a .* with 1 child in the invocation"):
        made.call({"a": X}, X)
    with pytest.raises(ValueError, match=r"Rank mismatch for args\[0\]\['a'\]"):
        made.call({"a": X, "b": X}, X)


def test_stages_are_not_changed() -> None:
    """What `trace` returns is still lowered and compiled as ever."""
    traced = pj.jit(product).trace(tied(), X)
    assert len(cast(Any, traced.jaxpr).in_avals) == 2
    assert traced.lower().compile()(tied(), X).tolist() == [42.0, 86.0]


def test_platforms() -> None:
    """Options of `jax.export` are passed on."""
    made = export_of(jit(product), platforms=["cpu", "tpu"])(tied(), X)
    assert made.platforms == ("cpu", "tpu")
