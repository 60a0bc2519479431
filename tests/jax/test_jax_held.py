"""What a callable holds, such as the object of a bound method, is an argument of each wrapper."""

from __future__ import annotations

import functools
import gc
import warnings
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import pytest

import pydag
import pydag.jaxinterop as pj

ONES = jnp.ones(3)


class Net(pj.Module):
    """A model that counts the times that it is traced."""

    traced: ClassVar[list[int]] = []

    def __init__(self) -> None:
        self.w, self.depth = jnp.zeros(3), 2

    def __call__(self, x: Any) -> Any:
        Net.traced.append(1)
        return self.w @ x

    def loss(self, x: Any, target: Any = 3.0) -> Any:
        return (self(x) - target) ** 2

    def step(self, carry: Any, x: Any) -> Any:
        carry = carry + self(x)
        return carry, carry

    def once(self, _: Any, carry: Any) -> Any:
        return carry + self(ONES)

    def more(self, carry: Any) -> Any:
        return carry + self(ONES) + 1

    def goes_on(self, carry: Any) -> Any:
        return carry < 2 + self(ONES)

    def added(self, one: Any, other: Any) -> Any:
        return one + other + self(ONES)


class Changes(pj.Module):
    """A model that changes itself."""

    def __init__(self) -> None:
        self.h = jnp.zeros(())

    def keep(self, x: Any) -> Any:
        self.h = self.h + jnp.sum(x)
        return jnp.sum(x)

    def step(self, carry: Any, x: Any) -> Any:
        return carry + self.keep(x), None


def function(model: Any, x: Any, power: int = 1) -> Any:
    """A function for partials."""
    return model(x) ** power


def keyword(x: Any, model: Any, power: int) -> Any:
    """The same, for partials of keywords."""
    return model(x) ** power


def array_of(fun: Callable[..., Any], net: Any) -> Any:
    """A wrapper of a partial of a container that has the model's weight."""
    box = {"w": net.w}
    held = fun(functools.partial(lambda box, x: box["w"] @ x, box))

    def call(x: Any) -> Any:
        box["w"] = net.w
        return held(x)

    return call


XS = jnp.stack([ONES, ONES])

# Makes of a model a function of an array, and what that gives for weights of 0 and of 1.
CALLS: dict[str, tuple[Callable[[Any], Callable[..., Any]], Any, Any]] = {
    "jit: a module": (pj.jit, 0.0, 3.0),
    "jit: a method": (lambda net: pj.jit(net.__call__), 0.0, 3.0),
    "jit: a method with a default": (lambda net: pj.jit(net.loss), 9.0, 0.0),
    "jit: a partial": (lambda net: pj.jit(functools.partial(function, net)), 0.0, 3.0),
    "jit: a keyword": (lambda net: pj.jit(functools.partial(keyword, power=2, model=net)), 0, 9.0),
    "jit: a partial of a method": (
        lambda net: pj.jit(functools.partial(net.loss, target=jnp.float32(4.0))),
        16.0,
        1.0,
    ),
    "jit: a container": (lambda net: array_of(pj.jit, net), 0.0, 3.0),
    "jit: jit": (lambda net: pj.jit(pj.jit(net.loss)), 9.0, 0.0),
    "jit: grad": (lambda net: pj.jit(pj.grad(net.loss)), 0.0, 0.0),
    "jit: vmap": (
        lambda net: (lambda jitted: lambda x: jitted(x[None])[0])(pj.jit(pj.vmap(net))),
        0.0,
        3.0,
    ),
    "jit: checkpoint": (lambda net: pj.jit(pj.checkpoint(net.loss)), 9.0, 0.0),
    "jit: static": (lambda net: lambda x: pj.jit(net.loss, static_argnums=1)(x, 4), 16.0, 1.0),
    "jit: sharded": (
        lambda net: pj.jit(net, in_shardings=jax.sharding.SingleDeviceSharding(jax.devices()[0])),
        0.0,
        3.0,
    ),
    "value_and_grad": (lambda net: lambda x: pj.value_and_grad(net.loss)(x)[0], 9.0, 0.0),
    "grad": (lambda net: lambda x: jnp.sum(pj.grad(net)(x)), 0.0, 3.0),
    "jacfwd": (lambda net: lambda x: jnp.sum(pj.jacfwd(net)(x)), 0.0, 3.0),
    "jacrev": (lambda net: lambda x: jnp.sum(pj.jacrev(net)(x)), 0.0, 3.0),
    "hessian": (lambda net: lambda x: jnp.sum(pj.hessian(net.loss)(x)), 0.0, 18.0),
    "vmap": (lambda net: lambda x: pj.vmap(net)(x[None])[0], 0.0, 3.0),
    "checkpoint": (lambda net: pj.checkpoint(net.loss), 9.0, 0.0),
    "checkpoint, a module": (pj.checkpoint, 0.0, 3.0),
    "scan": (lambda net: lambda x: pj.scan(net.step, 0.0, XS)[0], 0.0, 6.0),
    "scan of a partial": (
        lambda net: lambda x: pj.scan(functools.partial(Net.step, net), 0.0, XS)[0],
        0.0,
        6.0,
    ),
    "associative_scan": (lambda net: lambda x: pj.associative_scan(net.added, XS)[1, 0], 2.0, 5.0),
    "map": (lambda net: lambda x: pj.map(net, XS)[0], 0.0, 3.0),
    "map of a method": (lambda net: lambda x: pj.map(net.loss, XS)[0], 9.0, 0.0),
    "fori_loop": (lambda net: lambda x: pj.fori_loop(0, 2, net.once, 0.0), 0.0, 6.0),
    "fori_loop, an array": (
        lambda net: lambda x: pj.fori_loop(0, jnp.int32(2), net.once, 0.0),
        0.0,
        6.0,
    ),
    "while_loop": (lambda net: lambda x: pj.while_loop(net.goes_on, net.more, 0.0), 2.0, 8.0),
    "while_loop, one holds": (
        lambda net: lambda x: pj.while_loop(below_two, net.more, 0.0),
        2.0,
        4.0,
    ),
    "cond": (lambda net: lambda x: pj.cond(True, net, jnp.sum, x), 0.0, 3.0),
    "switch": (lambda net: lambda x: pj.switch(1, [jnp.sum, net.loss], x), 9.0, 0.0),
    "vjp": (lambda net: lambda x: pj.vjp(net.loss, x)[0], 9.0, 0.0),
    "jvp": (lambda net: lambda x: pj.jvp(net, (x,), (x,))[1], 0.0, 3.0),
    "linearize": (lambda net: lambda x: pj.linearize(net, x)[1](x), 0.0, 3.0),
    "make_jaxpr": (
        lambda net: (
            lambda x: jax.core.eval_jaxpr(
                (closed := pj.make_jaxpr(net)(x)).jaxpr, closed.consts, x
            )[0]
        ),
        0.0,
        3.0,
    ),
    "lower": (lambda net: lambda x: pj.jit(net).lower(x).compile()(x), 0.0, 3.0),
}


def below_two(carry: Any) -> Any:
    """A condition that holds nothing."""
    return carry < 2


@pytest.mark.parametrize("name", CALLS)
def test_training_in_place_changes_the_answer(name: str) -> None:
    """The answer is that of the model as it is at the call, and nothing is warned about."""
    make, before, after = CALLS[name]
    net = Net()
    wrapped = make(net)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(jnp.sum(wrapped(ONES))) == before
        net.w = jnp.ones(3)
        assert float(jnp.sum(wrapped(ONES))) == after


STAGED = [name for name in CALLS if name.split(":")[0].split(",")[0].split(" of")[0] in (
    "jit", "checkpoint", "scan", "map", "fori_loop", "while_loop", "cond", "switch",
)]  # fmt: skip


@pytest.mark.parametrize("name", STAGED)
def test_training_in_place_makes_no_new_trace(name: str) -> None:
    """Where JAX would not trace a function again, a changed weight doesn't make it."""
    net = Net()
    wrapped = CALLS[name][0](net)
    wrapped(ONES)
    net.w = jnp.ones(3)
    Net.traced.clear()
    wrapped(ONES)
    assert not Net.traced


def test_every_access_of_a_method_is_one_function() -> None:
    """`pj.jit(net.loss)` in a loop, and of several models alike, is traced once."""
    Net.traced.clear()
    for value in range(4):
        net = Net()
        net.w = jnp.full(3, value)
        assert float(pj.jit(net.loss)(ONES)) == (3 * value - 3) ** 2
    assert len(Net.traced) <= 2  # zeros of another type came first


def test_a_static_leaf_that_changed_is_traced_anew() -> None:
    """What is configuration in the model is part of the key, as in an argument."""
    net = Net()

    def deep(self: Net) -> Any:
        return self.w.sum() + self.depth

    jitted = pj.jit(deep.__get__(net))
    assert float(jitted()) == 2
    net.depth = 5
    assert float(jitted()) == 5


@pytest.mark.parametrize(
    "run",
    [
        lambda model: pj.jit(model.keep)(ONES),
        lambda model: pj.jit(functools.partial(Changes.keep, model))(ONES),
        lambda model: pj.grad(model.keep)(ONES),
        lambda model: pj.vmap(model.keep)(XS),
        lambda model: pj.checkpoint(model.keep)(ONES),
        lambda model: pj.scan(model.step, 0.0, XS),
        lambda model: pj.vjp(model.keep, ONES),
        lambda model: pj.jacrev(model.keep)(ONES),
    ],
    ids=["jit", "partial", "grad", "vmap", "checkpoint", "scan", "vjp", "jacrev"],
)
def test_a_change_of_what_is_held_is_lost(run: Callable[[Any], Any]) -> None:
    """The model stays as it is, without a tracer, and a warning names `self` and its leaf."""
    model = Changes()
    before = model.h
    with pytest.warns(pj.LostUpdateWarning, match=r"changed self(\[0\])?\.h, and the change"):
        run(model)
    assert model.h is before


def test_the_warning_says_how_what_is_held_can_be_updated() -> None:
    """`update_argnums` names arguments, so what is held has to become one."""
    with pytest.warns(pj.LostUpdateWarning) as told:
        pj.jit(Changes().keep)(jnp.ones(5))
    assert "Or pass the object as an argument, and name that in" in str(told[0].message)


def test_errors_name_what_is_held() -> None:
    """A path in what is held begins with `self`."""
    net: Any = Net()
    net.w = {"x": [jnp.ones(2), bytearray(b"a")]}
    with pytest.raises(TypeError, match=r"self\.w\['x'\]\[1\] is no array"):
        pj.jit(net)(ONES)


def test_what_is_held_and_passed_is_one_object() -> None:
    """In `jit` one identity table spans what is held and the arguments."""
    net = Net()

    def same(self: Any, other: Any) -> Any:
        return self is other

    assert pj.jit(same.__get__(net))(net)


def test_a_function_that_holds_configuration_stays_a_constant() -> None:
    """Numbers, text and functions of a partial are no arguments."""

    def power(x: Any, n: int) -> Any:
        assert type(n) is int
        return x**n

    assert pj.jit(functools.partial(power, n=3))(2) == 8
    assert type(pj.jit(function)) is type(pj.jit(functools.partial(power, n=3)))


def test_stages_have_the_trees_of_the_user() -> None:
    """What is held is passed at each call."""
    net = Net()
    lowered = pj.jit(net.loss).lower(ONES)
    compiled = lowered.compile()
    assert float(compiled(ONES)) == 9
    net.w = jnp.ones(3)
    assert float(compiled(ONES)) == 0


def test_nothing_is_kept_of_a_model() -> None:
    """When the last reference to a model goes, its arrays do."""
    net = Net()
    loop = pj.scan(net.step, 0.0, XS)
    jitted, looped = pj.jit(net.loss), pj.jit(pj.grad(net.loss))
    jitted(ONES), looped(ONES), pj.checkpoint(net.loss)(ONES), pj.vmap(net)(XS)
    gone = weakref.ref(net)
    del net, jitted, looped, loop
    gc.collect()
    assert gone() is None


def test_a_gradient_by_an_argument_that_is_held_too() -> None:
    """What is held is constant under a derivative, whatever else is differentiated by."""
    net = Net()
    net.w = jnp.ones(3)

    def product(self: Any, other: Any) -> Any:
        return jnp.sum(self.w * other.w)

    gradient = pj.grad(product.__get__(net))(net)
    assert gradient.w.tolist() == [1, 1, 1]


def test_nnx_and_equinox_methods() -> None:
    """Methods of NNX and equinox modules hold their modules, too."""
    nnx = pytest.importorskip("flax.nnx")

    class Line(nnx.Module):  # type: ignore[misc, name-defined]  # an optional library
        def __init__(self) -> None:
            self.w = nnx.Param(jnp.zeros(3))

        def __call__(self, x: Any) -> Any:
            return self.w[...] @ x

    line = Line()
    for jitted in (pj.jit(line), pj.jit(line.__call__), pj.checkpoint(line)):
        line.w[...] = jnp.zeros(3)
        assert float(jitted(ONES)) == 0
        line.w[...] = jnp.ones(3)
        assert float(jitted(ONES)) == 3
    eqx = pytest.importorskip("equinox")

    class Affine(eqx.Module):  # type: ignore[misc, name-defined]  # an optional library
        w: Any

        def __call__(self, x: Any) -> Any:
            return self.w @ x

        def twice(self, x: Any, y: Any, z: Any = 0) -> Any:
            assert type(z) is int
            return self.w @ x + self.w @ y

    affine = Affine(ONES)
    assert float(pj.jit(affine.__call__)(ONES)) == 3
    assert float(pj.jit(affine.twice, static_argnames="z")(ONES, ONES, z=1)) == 6


def test_a_ref_that_is_held_is_written() -> None:
    """A method that writes into a ref of its object reaches the ref."""
    box = {"count": jax.new_ref(jnp.float32(0))}

    def count(box: Any, x: Any) -> Any:
        box["count"][...] += x
        return x

    pj.jit(functools.partial(count, box))(1.0)
    pj.scan(lambda c, x: (c, x), 0.0, XS)
    assert float(box["count"][...]) == 1


def test_loops_with_fresh_functions_keep_nothing() -> None:
    """A loop of functions that are made for the call, and perhaps a method, leaves nothing."""
    from pydag.jaxinterop import function_cache

    net = Net()

    def kept_after(times: int) -> int:
        for _ in range(times):
            pj.while_loop(lambda carry: carry < 2, net.more, 0.0)
            pj.while_loop(lambda carry: carry < 2, lambda carry: carry + 1, 0.0)
        gc.collect()
        return len(function_cache._made)

    assert kept_after(2) == kept_after(3)


def test_dag_functions_are_not_asked_what_they_hold() -> None:
    """A function that closes over a model keeps it as a constant, as in JAX."""
    net = Net()
    jitted = pj.jit(lambda x: net(x))
    assert float(jitted(ONES)) == 0
    net.w = jnp.ones(3)
    assert float(jitted(ONES)) == 0
    assert pydag.dag_leaves(net)


class Ruled(pj.Module):
    """A module whose methods are a function and the rules of its derivative."""

    def __init__(self) -> None:
        self.w, self.scale = jnp.ones(2), jnp.float32(1.0)

    def value(self, x: Any) -> Any:
        return jnp.sum(self.w * x)

    def forward(self, x: Any) -> Any:
        return self.value(x), None

    def backward(self, _: Any, cotangent: Any) -> Any:
        return (cotangent * self.scale * self.w,)

    def tangent(self, primals: Any, tangents: Any) -> Any:
        return self.value(*primals), self.scale * jnp.sum(self.w * tangents[0])


@pytest.mark.parametrize("is_jitted", [False, True])
@pytest.mark.parametrize("kind", ["custom_vjp", "custom_jvp", "defjvps"])
def test_functions_with_rules(kind: str, is_jitted: bool) -> None:
    """Methods with rules that are methods: after training, all of it is the new model's."""
    ruled = Ruled()
    if kind == "custom_vjp":
        f: Any = pj.custom_vjp(ruled.value)
        f.defvjp(ruled.forward, ruled.backward)
    else:
        f = pj.custom_jvp(ruled.value)
        if kind == "custom_jvp":
            f.defjvp(ruled.tangent)
        else:
            f.defjvps(lambda tangent, _, x: 2 * jnp.sum(tangent))
    gradient = pj.grad(f)
    if is_jitted:
        f, gradient = pj.jit(f), pj.jit(gradient)
    x = jnp.full(2, 3.0)
    for w, scale in ((1.0, 1.0), (2.0, 1.0), (2.0, 5.0)):
        ruled.w, ruled.scale = jnp.full(2, w), jnp.float32(scale)
        assert float(f(x)) == 6 * w
        expected = 2.0 if kind == "defjvps" else w * scale
        assert gradient(x).tolist() == [expected] * 2
    if is_jitted:
        assert f._cache_size() == 1
