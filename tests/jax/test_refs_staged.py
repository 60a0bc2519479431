# SPDX-License-Identifier: Apache-2.0
"""Refs in loops, branches and checkpoints: not carried, but lent; a write happens once."""

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


@pytest.mark.parametrize("name", LOOPS)
def test_it_is_traced_no_more_than_needed(name: str) -> None:
    """A second call outside of `jit` traces nothing anew, for functions that are the same."""
    calls = []

    def body(model: Any) -> Any:
        calls.append(1)
        return grow(model)

    def loop(c: Any, _: Any) -> Any:
        return body(c), None

    def other(model: Any) -> Any:
        return model

    def small(model: Any) -> Any:
        return model["b"][...] < 3

    runs: dict[str, Any] = {
        "scan": lambda m: pj.scan(loop, m, length=3),
        "fori_loop": lambda m: pj.fori_loop(0, 3, lambda _, c: body(c), m),
        "while_loop": lambda m: pj.while_loop(small, body, m),
        "cond": lambda m: pj.cond(True, body, other, m),
        "switch": lambda m: pj.switch(1, [other, body], m),
        "checkpoint": lambda m: pj.checkpoint(body)(m),
    }
    _, model = tied()
    runs[name](model)
    if name != "fori_loop":  # its lambda is another one each time
        runs[name](model)
    assert len(calls) == 1


def test_a_ref_in_what_is_stacked() -> None:
    """A ref in `y` is the very object, too; what is carried beside it is carried."""
    ref, model = tied()

    def body(carry: Any, x: Any) -> Any:
        model, total = carry
        grow(model)
        return (model, total + x), {"ref": model["b"], "now": model["b"][...]}

    (out, total), ys = pj.scan(body, (model, jnp.float32(0.0)), jnp.arange(3.0))
    assert out["a"] is ref
    assert ys["ref"] is ref
    assert float(total) == 3.0
    assert ys["now"].tolist() == [1.0, 2.0, 3.0]


CARRIES: dict[str, Callable[[Any, Any], Any]] = {
    "swapped": lambda c, _: ((c[1], c[0]), None),
    "made": lambda c, _: ((jax.new_ref(0.0), c[1]), None),
    "content": lambda c, _: ((c[0][...], c[1]), None),
    "one for two": lambda c, _: ((c[0], c[0]), None),
}


@pytest.mark.parametrize("name", CARRIES)
def test_another_ref_in_the_carry(name: str) -> None:
    """After the body the same ref must stand at the same place: else an error with path, sides."""
    carry = (jax.new_ref(0.0), jax.new_ref(1.0))
    with pytest.raises((TypeError, ValueError), match=r"carry\[[01]\]") as caught:
        pj.scan(CARRIES[name], carry, length=2)
    assert "given" in str(caught.value) or "first tree" in str(caught.value)
    assert [float(ref[...]) for ref in carry] == [0.0, 1.0]


TO_REFS: dict[str, Callable[[Any, Any], Any]] = {
    "scan": lambda f, carry: pj.scan(lambda c, _: (f(c), None), carry, length=2),
    "fori_loop": lambda f, carry: pj.fori_loop(0, 2, lambda _, c: f(c), carry),
    "while_loop": lambda f, carry: pj.while_loop(lambda c: c["r"][...] < 5, f, carry),
    "jit of scan": lambda f, carry: pj.jit(
        lambda carry: pj.scan(lambda c, _: (f(c), None), carry, length=2)
    )(carry),
}


@pytest.mark.parametrize("from_around", [False, True])
@pytest.mark.parametrize("name", TO_REFS)
def test_a_ref_where_an_array_was(name: str, from_around: bool) -> None:
    """A body that puts a ref at the place of an array gets an error, whichever ref it is."""
    around, inside = jax.new_ref(0.0), jax.new_ref(1.0)

    def body(carry: Any) -> Any:
        return {"k": around if from_around else carry["r"], "r": carry["r"]}

    with pytest.raises(TypeError, match=r"carry\['k'\] is a ref, and an array was given there"):
        TO_REFS[name](body, {"k": jnp.float32(2.0), "r": inside})
    assert (float(around[...]), float(inside[...])) == (0.0, 1.0)


def test_branches_that_return_other_refs() -> None:
    """Outputs of branches must be the same ref in each."""
    one, other = jax.new_ref(0.0), jax.new_ref(1.0)
    with pytest.raises(TypeError, match="same refs at the same places") as caught:
        pj.cond(True, lambda a, b: {"r": a}, lambda a, b: {"r": b}, one, other)
    assert "result['r']" in str(caught.value)


def test_a_ref_that_a_branch_made() -> None:
    """JAX lets no ref out that a branch has made: the error has the path."""
    make = lambda m: {"new": jax.new_ref(m["a"][...])}  # noqa: E731  it is short
    with pytest.raises(ValueError, match=r"result\['new'\]"):
        pj.cond(True, make, make, tied()[1])


def test_a_condition_that_writes() -> None:
    """The condition of a loop may read what the body writes, and may not write."""
    ref, model = tied()

    def condition(m: Any) -> Any:
        add_to(m["a"], 1.0)
        return m["b"][...] < 3

    with pytest.raises(ValueError, match="the condition of while_loop writes"):
        pj.while_loop(condition, grow, model)
    with pytest.raises(ValueError, match="the condition of while_loop writes"):
        pj.while_loop(lambda x: (add_to(ref, 1.0), x < 3)[1], lambda x: x + 1, 0)
    assert float(ref[...]) == 0.0


def test_closed_over_refs_of_a_loop() -> None:
    """A ref that body and condition take from around them is one ref for both."""
    ref, _ = tied()

    def body(x: Any) -> Any:
        add_to(ref, 1.0)
        return x

    pj.while_loop(lambda _: ref[...] < 4, body, jnp.float32(0.0))
    assert float(ref[...]) == 4.0


@pytest.mark.parametrize("name", ["scan", "cond", "checkpoint", "while_loop", "fori_loop"])
def test_closed_over_as_well_as_passed(name: str) -> None:
    """As under `jit`: JAX's error, with the argument's path."""
    ref, model = tied()
    runs: dict[str, Callable[[], Any]] = {
        "scan": lambda: pj.scan(lambda c, _: (c, ref[...]), model, length=2),
        "cond": lambda: pj.cond(True, lambda m: ref[...], lambda m: m["a"][...], model),
        "checkpoint": lambda: pj.checkpoint(lambda m: ref[...])(model),
        "while_loop": lambda: pj.while_loop(lambda m: ref[...] < 3, grow, model),
        "fori_loop": lambda: pj.fori_loop(0, 2, lambda _, m: (add_to(ref, 1.0), m)[1], model),
    }
    with pytest.raises(ValueError, match=r"closed over .*passed as the\s+argument \w+.*'a'"):
        runs[name]()
    assert float(ref[...]) == 0.0


@pytest.mark.parametrize("how", ["eager", "jit", "grad of jit"])
@pytest.mark.parametrize("is_passed", [True, False])
@pytest.mark.parametrize("name", ["scan", "cond", "checkpoint", "fori_loop"])
def test_a_write_happens_once(name: str, is_passed: bool, how: str) -> None:
    """Under a derivative a plumbing write is done once, passed or closed over, and right."""
    ref, model = tied()

    def count(m: Any, w: Any) -> Any:
        add_to(m["a"], 1.0)
        return w * w

    def loss(w: Any, m: Any) -> Any:
        m = m if is_passed else model
        if name == "scan":
            if is_passed:
                return pj.scan(lambda c, _: ((c[0], count(*c)), None), (m, w), length=2)[0][1]
            return pj.scan(lambda c, _: (count(m, c), None), w, length=2)[0]
        if name == "fori_loop":
            if is_passed:
                return pj.fori_loop(0, 2, lambda _, c: (c[0], count(*c)), (m, w))[1]
            return pj.fori_loop(0, 2, lambda _, c: count(m, c), w)
        if name == "cond":
            if is_passed:
                return pj.cond(w > 0, count, lambda m, w: w, m, w)
            return pj.cond(w > 0, lambda w: count(m, w), lambda w: w, w)
        if is_passed:
            return pj.checkpoint(count)(m, w)
        return pj.checkpoint(lambda w: count(m, w))(w)

    given = model if is_passed else {}
    derivatives: dict[str, Any] = {
        "eager": pj.grad(loss),
        "jit": pj.jit(pj.grad(loss)),
        "grad of jit": pj.grad(pj.jit(loss)),
    }
    rounds = 2 if name in ("scan", "fori_loop") else 1
    gradient = derivatives[how](jnp.float32(3.0), given)
    assert float(ref[...]) == rounds
    assert float(gradient) == (4 * 27.0 if rounds == 2 else 6.0)


def test_rules_inside_are_kept() -> None:
    """A function with a derivative of its own keeps it where contents are lent."""

    @jax.custom_jvp  # type: ignore[untyped-decorator]  # JAX says no types
    def steep(x: Any) -> Any:
        return x

    steep.defjvp(lambda primals, tangents: (primals[0], tangents[0] * 100))

    def run(m: Any, w: Any) -> Any:
        add_to(m["a"], 1.0)
        return steep(w)

    ref, model = tied()
    derivatives: list[Any] = [pj.grad, lambda f: pj.jit(pj.grad(f))]
    for derivative in derivatives:
        for inner in (run, pj.checkpoint(run), lambda m, w: pj.cond(True, run, run, m, w)):
            assert (
                float(derivative(lambda w, m, f=inner: f(m, w))(jnp.float32(2.0), model)) == 100.0
            )
    assert float(ref[...]) == 6.0


def test_nothing_is_written_by_what_fails() -> None:
    """An exception while the body is traced leaves the content as it was."""
    ref, model = tied()

    def fails(m: Any) -> Any:
        grow(m)
        raise RuntimeError("half way")

    for run in (
        lambda: pj.checkpoint(fails)(model),
        lambda: pj.cond(True, fails, fails, model),
        lambda: pj.scan(lambda c, _: (fails(c), None), model, length=2),
    ):
        with pytest.raises(RuntimeError, match="half way"):
            run()
    assert float(ref[...]) == 0.0


def test_a_plain_loop_inside() -> None:
    """Steps of plain JAX that are given refs, a loop or a compiled function, work inside."""
    ref, model = tied()

    @jax.jit  # type: ignore[untyped-decorator]  # JAX says no types
    def double(r: Any) -> None:
        r[...] = r[...] * 2

    def run(m: Any) -> Any:
        add_to(m["a"], 1.0)
        double(m["b"])
        jax.lax.fori_loop(0, 3, lambda _, x: (add_to(m["a"], 1.0), x)[1], 0)
        return m

    assert pj.checkpoint(run)(model)["a"] is ref
    assert float(ref[...]) == 5.0
