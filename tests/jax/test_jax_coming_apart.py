# SPDX-License-Identifier: Apache-2.0
"""Loops and branches share what is one object before and after, as the Python loop does."""

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pydag
import pydag.jaxinterop as pj

TIMES = 3


def scan(body: Callable[[Any], Any], init: Any, n: int = TIMES) -> Any:
    return pj.scan(lambda c, _: (body(c), None), init, length=n)[0]


def while_loop(body: Callable[[Any], Any], init: Any, n: int = TIMES) -> Any:
    return pj.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, body(c[1])), (0, init))[1]


def fori_loop(body: Callable[[Any], Any], init: Any, n: int = TIMES) -> Any:
    return pj.fori_loop(0, n, lambda _, c: body(c), init)


loops = pytest.mark.parametrize("loop", [scan, while_loop, fori_loop])


@pytest.fixture(autouse=True)
def no_warnings() -> Any:
    """What comes apart in silence must be silent."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@loops
def test_a_carry_that_starts_as_one(loop: Any) -> None:
    """`(z, z)` whose body returns two is a carry of two; the body is traced at most once more."""
    traces = []

    def body(carry: Any) -> Any:
        traces.append(carry[0] is carry[1])
        h, c = carry
        return h + 1, c + h

    z = jnp.float32(1.0)
    h, c = loop(body, (z, z))
    assert (float(h), float(c)) == (4.0, 7.0)
    assert traces[0] is True
    assert traces[-1] is False
    assert len(traces) <= 3  # JAX itself may trace a body twice
    del traces[:]
    jitted = pj.jit(lambda z: loop(body, (z, z)))
    assert list(map(float, jitted(z))) == [4.0, 7.0]
    assert list(map(float, jitted(z + 1))) == [5.0, 11.0]
    assert len(traces) <= 3


@loops
def test_what_stays_one_and_what_comes_apart(loop: Any) -> None:
    """Of four places with one array two pairs stay, where the body returns two pairs."""

    def body(carry: Any) -> Any:
        a, _b, c, _d = carry
        first, second = a + 1, c * 2
        return [first, first, second, second]

    z = jnp.float32(1.0)
    a, b, c, d = loop(body, [z, z, z, z])
    assert a is b
    assert c is d
    assert a is not c
    assert (float(a), float(c)) == (4.0, 8.0)


@loops
def test_a_body_that_ties(loop: Any) -> None:
    """What only the result has as one object stays two."""
    out = loop(lambda c: {"a": c["a"], "b": c["a"]}, {"a": [jnp.ones(2)], "b": [jnp.zeros(2)]})
    assert out["a"] is not out["b"]
    assert out["b"][0].tolist() == [1.0, 1.0]


@loops
def test_sharing_that_changes_again(loop: Any) -> None:
    """Where the body looks at the sharing and unties more, all that was one comes apart."""

    def body(carry: Any) -> Any:
        a, b, c = carry
        if a is b is c:
            return [a + 1, a + 2, a + 2]  # then b and c stay one, and the body is traced again
        return [a + 1, b + 2, c + 3]

    z = jnp.float32(0.0)
    assert list(map(float, loop(body, [z, z, z]))) == [3.0, 6.0, 9.0]


@loops
def test_containers_come_apart(loop: Any) -> None:
    """A list that stands twice in the carry; what is below it may stay shared."""

    def body(carry: Any) -> Any:
        shared = carry["x"][0] + 1
        return {"x": [shared, carry["x"][1] * 2], "y": [shared, carry["y"][1] * 3], "n": "net"}

    layer = [jnp.float32(0.0), jnp.float32(1.0)]
    out = loop(body, {"x": layer, "y": layer, "n": "net"})
    assert out["x"] is not out["y"]
    assert out["x"][0] is out["y"][0]
    assert [float(v) for v in (*out["x"], out["y"][1])] == [3.0, 8.0, 27.0]


@loops
def test_no_iteration(loop: Any) -> None:
    """A loop of no rounds gives two as well."""
    z = jnp.float32(1.0)
    a, b = loop(lambda c: (c[0] + 1, c[1] + 2), (z, z), 0)
    assert a is not b
    assert (float(a), float(b)) == (1.0, 1.0)


def test_conjugate_gradients() -> None:
    """The textbook loop, whose residual and direction start as one array, as by plain JAX."""
    matrix, b = jnp.diag(jnp.arange(1.0, 4.0)) + 0.1, jnp.ones(3)

    def solve(lax: Any) -> Any:
        def body(c: Any) -> Any:
            x, r, p, i = c
            q = matrix @ p
            a = r @ r / (p @ q)
            r2 = r - a * q
            return x + a * p, r2, r2 + (r2 @ r2) / (r @ r) * p, i + 1

        return lax.while_loop(lambda c: c[3] < 3, body, (jnp.zeros(3), b, b, 0))[0]

    assert solve(pj).tolist() == solve(jax.lax).tolist()


def test_associative_scan() -> None:
    """As the loops."""
    w = jnp.arange(1.0, 5.0)
    a, b = pj.associative_scan(lambda p, q: (p[0] + q[0], p[1] * q[1]), (w, w))
    assert (a.tolist(), b.tolist()) == ([1.0, 3.0, 6.0, 10.0], [1.0, 2.0, 6.0, 24.0])


def test_branches() -> None:
    """What is one object in each branch stays one, else it is two; each is traced once more."""
    traces = []

    def same(t: Any) -> Any:
        traces.append("same")
        return t

    def untied(t: Any) -> Any:
        traces.append("untied")
        return {**t, "b": t["b"] + 1}

    w = jnp.float32(1.0)
    model = {"a": w, "b": w, "c": [w], "n": 3}
    for pred, b in ((True, 1.0), (False, 2.0)):
        out = pj.cond(jnp.bool_(pred), same, untied, model)
        assert out["a"] is out["c"][0]
        assert out["a"] is not out["b"]
        assert (float(out["a"]), float(out["b"]), out["n"]) == (1.0, b, 3)
    del traces[:]
    pj.jit(lambda i, m: pj.switch(i, [untied, untied, same], m)["b"])(2, model)
    assert traces.count("same") <= 2
    assert traces.count("untied") <= 4
    out = pj.switch(2, [untied, untied, same], model)
    assert out["a"] is out["c"][0]
    assert out["a"] is not out["b"]


@pydag.register_module
class Model:
    """With a tie."""

    def __init__(self) -> None:
        self.a = self.b = jnp.float32(1.0)


def _plain(model: Any) -> Any:
    """As a plain `jax.tree.map` gives it."""
    new = Model()
    new.a, new.b = model.a + 1, model.b + 1
    return new


@loops
def test_modules_are_told(loop: Any) -> None:
    """`LostTieWarning`, with both paths, where modules or what they hold come apart."""
    with pytest.warns(pj.LostTieWarning, match=r"\.a and .*\.b are one object"):
        out = loop(_plain, Model())
    assert out.a is not out.b
    assert float(out.b) == 4.0
    out = loop(lambda m: pydag.dag_map(lambda x: x + 1, m), Model())
    assert out.a is out.b


def test_modules_of_branches_are_told() -> None:
    """The same for results of branches."""
    with pytest.warns(pj.LostTieWarning, match=r"result\.a and result\.b are one object"):
        out = pj.cond(jnp.bool_(True), lambda m: m, _plain, Model())
    assert out.a is not out.b


@loops
def test_what_comes_apart_is_known_at_the_next_call(loop: Any) -> None:
    """A later call of a loop that has come apart doesn't trace its body for the tied carry."""
    traces = []

    def body(carry: Any) -> Any:
        traces.append(carry[0] is carry[1])
        return carry[0] + 1, carry[1] + carry[0]

    def scanned(carry: Any, _: Any) -> Any:
        return body(carry), None

    def counted(_: Any, carry: Any) -> Any:
        return body(carry)

    runs: dict[Any, Callable[[Any], Any]] = {
        scan: lambda z: pj.scan(scanned, (z, z), length=TIMES)[0],
        while_loop: lambda z: pj.while_loop(lambda c: c[0] < 3, body, (z, z)),
        fori_loop: lambda z: pj.fori_loop(0, TIMES, counted, (z, z)),
    }
    run = runs[loop]
    first = run(jnp.float32(0.0))
    assert True in traces
    del traces[:]
    assert [list(map(float, run(jnp.float32(0.0)))) for _ in range(2)] == [
        list(map(float, first))
    ] * 2
    assert True not in traces
    # Other types, and another structure, are tried anew.
    assert run(jnp.ones((), jnp.int32))[1].dtype == jnp.int32
    assert True in traces


def test_modules_that_come_apart_are_told_at_each_call() -> None:
    """The warning of a loop that is known to come apart is said where the call stands."""

    class Pair(pj.Module):
        def __init__(self, z: Any) -> None:
            self.a = self.b = z

    def body(pair: Pair, _: Any) -> tuple[Pair, None]:
        new = Pair(pair.a)
        new.b = pair.b + 1
        return new, None

    for _ in range(2):
        with pytest.warns(pj.LostTieWarning, match="In what comes out they are two") as told:
            pj.scan(body, Pair(jnp.float32(0.0)), length=2)
        assert told[0].filename == __file__
