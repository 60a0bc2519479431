# SPDX-License-Identifier: Apache-2.0
"""Refs in loops, branches and checkpoints: passed, carried, made inside; errors."""

from collections.abc import Callable
from typing import Any

import pytest
from ref_writes import add_to, jax, jnp

from pydag import jaxinterop as pj


def tied() -> tuple[Any, dict[str, Any]]:
    """A ref, and a model that holds it twice."""
    ref = jax.new_ref(jnp.zeros(()))
    return ref, {"a": ref, "b": ref}


def grow(model: Any) -> Any:
    """Writes into the ref by one name, and returns the model."""
    add_to(model["a"], 1.0)
    return model


HOW: dict[str, Callable[[Any], Any]] = {"eager": lambda f: f, "jit": pj.jit}
LOOPS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "scan": (lambda m: pj.scan(lambda c, _: (grow(c), None), m, length=3)[0], 3.0),
    "fori_loop": (lambda m: pj.fori_loop(0, 3, lambda _, c: grow(c), m), 3.0),
    "fori_loop, traced": (
        lambda m: pj.jit(lambda n, m: pj.fori_loop(0, n, lambda _, c: grow(c), m))(3, m),
        3.0,
    ),
    "while_loop": (lambda m: pj.while_loop(lambda c: c["b"][...] < 3, grow, m), 3.0),
    "cond": (lambda m: pj.cond(True, grow, lambda m: m, m), 1.0),
    "switch": (lambda m: pj.switch(2, [lambda m: m, lambda m: m, grow], m), 1.0),
    "checkpoint": (lambda m: pj.checkpoint(grow)(m), 1.0),
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", LOOPS)
def test_the_very_ref_comes_back(name: str, how: str) -> None:
    """The body writes into the ref itself, and what comes out is the caller's object."""
    run, expected = LOOPS[name]
    ref, model = tied()
    out = HOW[how](run)(model)
    assert out["a"] is ref
    assert out["b"] is ref
    assert float(ref[...]) == expected


def counted(model: Any) -> Any:
    """As `grow`, where the content decides in Python."""
    if model["b"][...] >= 0:
        model["a"][...] = model["a"][...] + 1.0
    return model


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", LOOPS)
def test_functions_run_as_they_stand_under_disable_jit(
    name: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every wrapper runs its function, whatever was compiled before."""
    run, expected = LOOPS[name]
    ref, model = tied()
    HOW[how](run)(model)
    monkeypatch.setitem(globals(), "grow", counted)
    ref[...] = jnp.zeros(())
    with jax.disable_jit():
        out = HOW[how](run)(model)
    assert out["a"] is out["b"] is ref
    assert float(ref[...]) == expected


def python_step(model: Any, x: Any, times: int = 1) -> Any:
    """Writes into a ref, and updates an array, by what they hold."""
    for _ in range(times):
        counted(model)
        if model["b"][...] < 10 and x > 0:
            model["w"] = model["w"] + x
    return model["w"] * 2


UNSTAGED: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "update_argnums": (lambda m: pj.jit(python_step, update_argnums=0)(m, 1.0), 1.0, 3.0),
    "update, static": (
        lambda m: pj.jit(python_step, update_argnums=0, static_argnums=2)(m, 1.0, 3), 3.0, 5.0),
    "checkpoint": (lambda m: pj.checkpoint(python_step, update_argnums=0)(m, 1.0), 1.0, 3.0),
    "donated": (lambda m: pj.jit(python_step, update_argnums=0, donate_argnums=1)(
        m, jnp.float32(1)), 1.0, 3.0),
    "nested": (lambda m: pj.jit(lambda m: pj.jit(python_step, update_argnums=0)(m, 1.0),
        update_argnums=0)(m), 1.0, 3.0),
    "grad": (lambda m: pj.grad(lambda x, m: python_step(m, x), update_argnums=1)(1.0, m), 1.0, 3.0),
    "many": (lambda m: pj.jit(lambda m, rest: [counted({"a": r, "b": r}) for r in rest] and
        python_step(m, 1.0), update_argnums=0)(m, [jax.new_ref(0.0) for _ in range(20)]), 1.0, 3.0),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSTAGED)
def test_updates_under_disable_jit(name: str) -> None:
    """What is written into refs and into updated arguments is there when the call returns."""
    run, count, weight = UNSTAGED[name]
    ref, model = tied()
    model["w"] = jnp.float32(2.0)
    with jax.disable_jit():
        run(model)
    assert float(ref[...]) == count
    assert float(model["w"]) == weight


def test_a_compiled_function_before_and_after_disable_jit() -> None:
    """The function is called by its plan, then as it stands, then by its plan."""
    ref, model = tied()
    traces: Any = []
    f = pj.jit(lambda m: (traces.append(isinstance(m["a"], jax.core.Tracer)), grow(m))[1])
    f(model), f(model)
    with jax.disable_jit():
        f(model), f(model)
    f(model)
    assert float(ref[...]) == 5.0
    assert traces == [True, False, False]


@pytest.mark.parametrize("how", [lambda f: f, pj.jit])
def test_a_loop_that_jax_runs_twice_writes_once(how: Any) -> None:
    """A ref in the carry of `while_loop`, and of a `fori_loop` of traced length, under `grad`."""

    def body(carry: Any) -> Any:
        return grow(carry[0]), carry[1] * 2.0

    def loss(x: Any, n: Any, m: Any) -> Any:
        one = pj.while_loop(lambda c: c[1] < 10, body, (m, x))[1]
        two = pj.fori_loop(0, n, lambda _, c: body(c), (m, x))[1]
        return jax.lax.stop_gradient(one + two) + x

    ref, model = tied()
    gradient = how(lambda n, m: pj.grad(loss)(jnp.float32(0.7), n, m))(4, model)
    assert float(gradient) == 1.0
    assert float(ref[...]) == 8.0


CARRIES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "swapped": (lambda c: (c[1], c[0], c[2]), r"carry\[0\] must be the very ref"),
    "made": (lambda c: (jax.new_ref(0.0), *c[1:]), r"carry\[0\] must be the very ref"),
    "one for two": (lambda c: (c[0], c[0], c[2]), r"carry\[1\] must be the very ref"),
    "content": (lambda c: (c[0][...], *c[1:]), r"carry\[0\] is a ref(.|\n)*it is an array"),
    "a ref for an array": (lambda c: (*c[:2], c[1]), r"carry\[2\] is an array(.|\n)*it is a ref"),
}
TO_REFS: dict[str, Callable[[Any, Any], Any]] = {
    "scan": lambda f, carry: pj.scan(lambda c, _: (f(c), None), carry, length=2),
    "fori_loop": lambda f, carry: pj.fori_loop(0, 2, lambda _, c: f(c), carry),
    "while_loop": lambda f, carry: pj.while_loop(lambda c: c[1][...] < 5, f, carry),
}


@pytest.mark.parametrize("loop", TO_REFS)
@pytest.mark.parametrize("name", CARRIES)
def test_another_ref_in_the_carry(name: str, loop: str) -> None:
    """After the body the same ref must stand at the same place: else an error with path, sides."""
    carry = (jax.new_ref(0.0), jax.new_ref(1.0), jnp.float32(2.0))
    body, says = CARRIES[name]
    with pytest.raises(TypeError, match=says):
        TO_REFS[loop](body, carry)
    assert [float(ref[...]) for ref in carry[:2]] == [0.0, 1.0]


def test_branches_that_return_other_refs() -> None:
    """Results of branches must be the same ref in each."""
    one, other = jax.new_ref(0.0), jax.new_ref(1.0)
    branches: list[Any] = [lambda a, b: {"r": b}, lambda a, b: {"r": b[...]}]
    for branch in branches:
        with pytest.raises(TypeError, match=r"result\['r'\](.|\n)*not the same ref"):
            pj.cond(True, lambda a, b: {"r": a}, branch, one, other)


def test_a_condition_that_writes() -> None:
    """The condition of a loop may read the refs that are carried, and may not write into them."""
    ref, model = tied()

    def condition(m: Any) -> Any:
        add_to(m["a"], 1.0)
        return m["b"][...] < 3

    with pytest.raises(ValueError, match="condition writes into a ref of the carry"):
        pj.while_loop(condition, grow, model)
    assert float(ref[...]) == 0.0


@pytest.mark.parametrize("name", ["checkpoint", "while_loop", "the condition", "fori_loop"])
def test_closed_over_as_well_as_passed(name: str) -> None:
    """JAX's error comes, with the argument's path, as under `jit`, where contents are passed."""
    ref, model = tied()

    def more(m: Any) -> Any:
        add_to(ref, 1.0)
        return m

    runs: dict[str, Callable[[], Any]] = {
        "checkpoint": lambda: pj.checkpoint(lambda m: ref[...])(model),
        "while_loop": lambda: pj.while_loop(lambda m: m["b"][...] < 3, more, model),
        "the condition": lambda: pj.while_loop(lambda m: ref[...] < 3, grow, model),
        "fori_loop": lambda: pj.jit(lambda n: pj.fori_loop(0, n, lambda _, m: more(m), model))(2),
    }
    with pytest.raises(ValueError, match=r"closed over .*passed as the\s+argument \w+.*'a'"):
        runs[name]()
    assert float(ref[...]) == 0.0


def square(ref: Any) -> Any:
    ref[...] = jnp.sin(ref[...]) * ref[...]


SQUARED: dict[str, Callable[[Any], Any]] = {
    "scan": lambda r: pj.scan(lambda c, _: (square(r), (c, None))[1], 0, length=1),
    "fori_loop": lambda r: pj.fori_loop(0, 1, lambda i, c: (square(r), c)[1], 0),
    "cond": lambda r: pj.cond(r[...] > 0, lambda: square(r), lambda: None),
    "map": lambda r: pj.map(lambda i: (square(r), i)[1], jnp.arange(1)),
    "in a loop in a loop": lambda r: pj.scan(
        lambda c, _: (c, pj.fori_loop(0, 1, lambda i, k: (square(r), k)[1], c)), 0, length=1
    ),
}


def squared(name: str, freezes: bool = False) -> Callable[[Any], Any]:
    """A function of a number that is `sin(x) * x`, by way of a ref."""

    def f(x: Any) -> Any:
        ref = jax.new_ref(x)
        SQUARED[name](ref)
        return jax.freeze(ref) if freezes else ref[...]

    return f


# The same function of an array, and what JAX makes of it.
VALUE, SLOPE = 2.0 * float(jnp.sin(2.0)), float(jnp.sin(2.0) + 2.0 * jnp.cos(2.0))

DERIVATIVES: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: pj.grad(f)(2.0),
    "grad of jit": lambda f: pj.grad(pj.jit(f))(2.0),
    "jit of grad": lambda f: pj.jit(pj.grad(f))(2.0),
    "vjp": lambda f: pj.vjp(f, 2.0)[1](1.0)[0],
    "jvp": lambda f: pj.jvp(f, (2.0,), (1.0,))[1],
    "linearize": lambda f: pj.linearize(f, 2.0)[1](1.0),
    "JAX's grad": lambda f: jax.grad(f)(2.0),
    "JAX's jvp": lambda f: jax.jvp(f, (2.0,), (1.0,))[1],
}


@pytest.mark.parametrize("how", DERIVATIVES)
@pytest.mark.parametrize("name", SQUARED)
def test_a_derivative_goes_through_the_ref(name: str, how: str) -> None:
    """The derivative is that of the same function of arrays."""
    assert float(DERIVATIVES[how](squared(name))) == pytest.approx(SLOPE)


@pytest.mark.parametrize("vmap", [pj.vmap, jax.vmap])
@pytest.mark.parametrize("name", SQUARED)
def test_a_map_goes_through_the_ref(name: str, vmap: Any) -> None:
    """Under `vmap` each slice has a content of its own."""
    if name == "cond":
        pytest.skip("JAX maps no branches with effects by a mapped predicate")
    assert vmap(squared(name))(jnp.array([2.0, 0.0])).tolist() == pytest.approx([VALUE, 0.0])
    slopes = vmap(pj.grad(squared(name)))(jnp.array([2.0, 0.0])).tolist()
    assert slopes == pytest.approx([SLOPE, 0.0])


# --- refs in xs ---


def row_of(values: Any = (0.0, 1.0, 2.0)) -> Any:
    return jax.new_ref(jnp.array(values))


def written(carry: Any, x: Any) -> Any:
    """Writes into the row."""
    x[...] = x[...] * 2 + carry
    return carry + x[...], x[...] * 10


# Each runs with the functions of `jax.lax`, or with those of pydag, and a ref.
SCANNED: dict[str, Callable[[Any, Any], Any]] = {
    "alone": lambda lax, r: lax.scan(written, 0.0, r),
    "length": lambda lax, r: lax.scan(written, 0.0, r, length=3),
    "reverse": lambda lax, r: lax.scan(written, 0.0, r, reverse=True),
    "unroll": lambda lax, r: lax.scan(written, 0.0, r, unroll=2),
    "only read": lambda lax, r: lax.scan(lambda c, x: (c + x[...], None), 0.0, r),
    "beside an array": lambda lax, r: lax.scan(
        lambda c, x: written(c + x["y"], x["r"]), 0.0, {"r": r, "y": jnp.arange(3.0)}
    ),
    "beside a ref": lambda lax, r: lax.scan(
        lambda c, x: written(c + x[0][...], x[1]), 0.0, [row_of((5.0, 6.0, 7.0)), r]
    ),
    "in jit": lambda lax, r: jax.jit(lambda: lax.scan(written, 0.0, r))(),
    "in pydag's jit": lambda lax, r: pj.jit(lambda r: lax.scan(written, 0.0, r))(r),
    "in a scan": lambda lax, r: lax.scan(lambda c, _: lax.scan(written, c, r), 0.0, None, length=2),
    "map": lambda lax, r: lax.map(lambda x: written(1.0, x), r),
    "map beside an array": lambda lax, r: lax.map(
        lambda x: written(x[1], x[0])[0], (r, jnp.arange(3.0))
    ),
    "map in batches": lambda lax, r: lax.map(lambda x: x[...] + 1, r, batch_size=2),
}


@pytest.mark.parametrize("name", SCANNED)
def test_scanned_refs_are_sliced(name: str) -> None:
    """The body gets a row of the ref in each step; what it writes is written into the ref."""
    ours, wanted = row_of(), row_of()
    found, expected = SCANNED[name](pj, ours), SCANNED[name](jax.lax, wanted)
    assert jax.tree.map(lambda x: x.tolist(), found) == jax.tree.map(lambda x: x.tolist(), expected)
    assert ours[...].tolist() == wanted[...].tolist()


def test_rows_of_a_matrix() -> None:
    """A row is a ref of its own shape, which can be written in part, and scanned again."""

    def body(carry: Any, x: Any) -> Any:
        x[0] = x[1] + carry
        return pj.scan(lambda c, y: (c + y[...], None), carry, x)

    for lax in (pj, jax.lax):
        ref = row_of([[0.0, 1.0], [2.0, 3.0]])
        assert float(lax.scan(body, 0.0, ref)[0]) == 10.0
        assert ref[...].tolist() == [[1.0, 1.0], [5.0, 3.0]]


@pytest.mark.parametrize("places", [lambda r: {"a": r, "b": r}, lambda r: (r, [r])])
def test_a_ref_twice_in_xs(places: Any) -> None:
    """Such a ref is one row in the body."""
    ref = row_of()

    def body(carry: Any, x: Any) -> Any:
        one, other = jax.tree.leaves(x)
        assert one is other
        return written(carry, one)

    assert float(pj.scan(body, 0.0, places(ref))[0]) == 8.0
    assert ref[...].tolist() == [0.0, 2.0, 6.0]


def test_derivatives_through_scanned_refs() -> None:
    """The derivatives are those of JAX."""

    def loss(lax: Any, x: Any) -> Any:
        ref = jax.new_ref(x * jnp.arange(3.0))
        last, ys = lax.scan(written, x, ref)
        return last + (ys * ref[...]).sum()

    wanted = float(jax.grad(lambda x: loss(jax.lax, x))(2.0))
    grads: list[Any] = [pj.grad, jax.grad, lambda f: pj.jit(pj.grad(f))]
    for grad in grads:
        assert float(grad(lambda x: loss(pj, x))(2.0)) == wanted


def test_scanned_refs_that_are_there_twice_are_errors() -> None:
    """One in `xs` and in the carry, or closed over: JAX's error; it names the row."""
    ref = row_of()
    runs: list[Callable[[], Any]] = [
        lambda: pj.scan(lambda c, x: (c + x["r"][...] + ref[0], None), 0.0, {"r": ref}),
        lambda: pj.scan(
            lambda c, x: ((c[0] + c[1][0] + x["r"][...], c[1]), None), (0.0, ref), {"r": ref}
        ),
        lambda: pj.map(lambda x: x["r"][...] + ref[0], {"r": ref}),
    ]
    for run in runs:
        with pytest.raises(ValueError, match=r"closed over and passed as the argument x\['r'\]"):
            run()


def test_scanned_refs_have_leading_axes() -> None:
    """The axes have one size with the arrays; else there is an error with the path."""
    for xs, text in (
        ({"r": row_of(), "y": jnp.ones(2)}, r"xs\['r'\] has size 3, xs\['y'\] has size 2"),
        ({"r": jax.new_ref(0.0)}, r"without a leading axis: xs\['r'\]"),
    ):
        with pytest.raises(ValueError, match=text):
            pj.scan(lambda c, x: (c, None), 0.0, xs)


def test_a_row_can_not_be_returned() -> None:
    """JAX's error comes, or the one about carries."""
    with pytest.raises(ValueError, match=r"returned a mutable array reference(.|\n)*argument x"):
        pj.scan(lambda c, x: (c, x), 0.0, row_of())
    with pytest.raises(TypeError, match=r"carry is an array\n.*it is a ref"):
        pj.scan(lambda c, x: (x, None), 0.0, row_of())


@pytest.mark.filterwarnings("ignore::pydag.jaxinterop.LostTieWarning")
def test_scanned_refs_beside_a_carry_that_comes_apart() -> None:
    """The rows are written once."""
    ref = row_of()

    def body(c: Any, x: Any) -> Any:
        x[...] = x[...] + c["b"]
        return {"a": c["a"] + 1, "b": c["b"] * 2}, None

    last, _ = pj.scan(body, (lambda x: {"a": x, "b": x})(jnp.float32(1.0)), ref)
    assert (float(last["a"]), float(last["b"])) == (4.0, 8.0)
    assert ref[...].tolist() == [1.0, 3.0, 6.0]
