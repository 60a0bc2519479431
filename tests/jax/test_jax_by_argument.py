"""What is asked for by argument: the same object in another argument is another one."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pydag
import pydag.jaxinterop as pj


class Layer(pj.Module):
    """A module that checks what it is built of."""

    def __init__(self, w: Any) -> None:
        self.w, self.name = jnp.asarray(w), "layer"

    def __call__(self, x: Any) -> Any:
        return self.w * x


class Net(pj.Module):
    """A network in which one layer is used twice."""

    def __init__(self, w: float = 3.0) -> None:
        self.one = self.two = Layer(w)
        self.steps = jnp.int32(4)


def value(net: Any) -> Any:
    """Three times a square of the tied weight."""
    assert net.one is net.two
    return net.one(1.0) * net.two(3.0)


def loss(net: Any, target: Any) -> Any:
    """A distance, which has a derivative only if the target is constant."""
    assert net is not target
    assert net.one is not target.one
    assert net.one.w is not target.one.w
    return (value(net) - value(target) + 1) ** 2


NET = Net()
WANTED = 2 * 6 * 3.0


@pytest.mark.parametrize("is_jitted", [False, True])
@pytest.mark.parametrize("how", ["args", "kwargs", "inside", "other way"])
def test_a_derivative_is_by_its_argument(how: str, is_jitted: bool) -> None:
    """After `target = params` the target is constant, and ties inside of each argument hold."""
    calls: dict[str, Any] = {
        "args": lambda net: pj.grad(loss)(net, net),
        "kwargs": lambda net: pj.grad(loss)(net, target=net),
        "inside": lambda net: pj.grad(lambda n, others: loss(n, others[0]["x"]))(net, [{"x": net}]),
        "other way": lambda net: pj.grad(lambda t, n: loss(n, t), argnums=1)(net, net),
    }
    call = pj.jit(calls[how]) if is_jitted else calls[how]
    gradient = call(NET)
    assert float(gradient.one.w) == WANTED
    assert gradient.one is gradient.two
    assert gradient.steps is None


def test_value_aux_and_what_others_share() -> None:
    """The other arguments keep what they share among each other; an aux passes through."""

    def f(net: Any, one: Any, other: Any) -> Any:
        assert one is other
        assert one is not net
        return loss(net, one), (one, other)

    (found, (one, other)), gradient = pj.value_and_grad(f, has_aux=True)(NET, NET, NET)
    assert (float(found), float(gradient.one.w)) == (1.0, WANTED)
    assert one is other


def test_two_differentiated_arguments_share() -> None:
    """Summed, and shared in the gradient, as ever; a third one is constant."""

    def f(one: Any, other: Any, target: Any) -> Any:
        assert one is other
        assert one is not target
        return value(one) + value(other) + 100 * value(target)

    first, second = pj.grad(f, argnums=(0, 1))(NET, NET, NET)
    assert first is second
    assert float(first.one.w) == 2 * 2 * 3 * 3.0
    value_out, pullback = pj.vjp(lambda p, q: value(p) * value(q), NET, NET)
    first, second = pullback(jnp.ones_like(value_out))
    assert first is second


def test_wrt_and_static_and_refs() -> None:
    """The same with a selection, with static leaves, and beside a ref."""
    gradient = pj.grad(loss, wrt="*.w", static=str)(NET, NET)
    assert float(gradient.one.w) == WANTED
    ref = jax.new_ref(jnp.float32(0))

    def counted(net: Any, target: Any) -> Any:
        target["count"][...] += 1
        return loss(net["net"], target["net"])

    both = {"net": NET, "count": ref}
    assert float(pj.grad(counted)(both, both)["net"].one.w) == WANTED
    assert float(ref[...]) == 1


@pytest.mark.parametrize("jacobian", [pj.jacfwd, pj.jacrev])
def test_jacobians(jacobian: Any) -> None:
    """A Jacobian is by its argument, too; so is a Hessian."""
    assert float(jacobian(loss)(NET, NET).one.w) == WANTED
    second = pj.hessian(lambda p, q: p["w"] ** 2 * q["w"])({"w": 3.0}, {"w": 3.0})
    w = {"w": jnp.float32(3.0)}
    found = pj.hessian(lambda p, q: p["w"] ** 2 * q["w"])(w, w)
    assert float(found["w"]["w"]) == 6.0 == float(second["w"]["w"])


def test_a_carry_that_is_scanned() -> None:
    """`scan` carries an object and scans over it: two objects in the body."""
    xs = {"w": jnp.arange(3.0)}

    def body(carry: Any, x: Any) -> Any:
        return {"w": carry["w"] + x["w"]}, x["w"]

    carry, ys = pj.scan(body, xs, xs)
    assert carry["w"].tolist() == [3, 4, 5]
    assert ys.tolist() == [0, 1, 2]


def test_vmap_has_axes_by_argument() -> None:
    """An object is mapped in one argument and not in another; where axes agree it is one."""
    p = {"w": jnp.arange(3.0)}

    def f(one: Any, other: Any, third: Any) -> Any:
        assert one is third
        assert one is not other
        return jnp.sum(other["w"]) * one["w"]

    for mapped in (pj.vmap(f, in_axes=(0, None, 0)), pj.jit(pj.vmap(f, in_axes=(0, None, 0)))):
        assert mapped(p, p, p).tolist() == [0, 3, 6]
        assert mapped(p, p, p).tolist() == [0, 3, 6]
    same = Layer(jnp.arange(3.0))
    assert pj.vmap(lambda a, b: a.w * jnp.sum(b.w), (0, None))(same, same).tolist() == [0, 3, 6]
    with pytest.raises(
        pydag.SharingError, match=r"args\[1\]\['b'\], the same object, is not mapped"
    ):
        pj.vmap(lambda x, y: x, in_axes=(0, {"a": 0, "b": None}))(p, {"a": p["w"], "b": p["w"]})


def test_jvp_has_tangents_by_argument() -> None:
    """What two arguments hold is one, and has one tangent; of arrays alone each has its own."""
    w = {"w": jnp.float32(3.0)}
    one, zero = {"w": jnp.float32(1.0)}, {"w": jnp.float32(0.0)}
    _, tangent = pj.jvp(lambda p, q: p["w"] * q["w"], (w, w), (one, one))
    assert float(tangent) == 6
    _, tangent = pj.jvp(jnp.multiply, (w["w"], w["w"]), (one["w"], zero["w"]))
    assert float(tangent) == 3
    with pytest.raises(pydag.SharingError, match="the tuple of the tangents"):
        pj.jvp(lambda p, q: p["w"] * q["w"], (w, w), (one, zero))


def test_linearize_has_tangents_by_argument() -> None:
    """So does the linear map."""
    w = {"w": jnp.float32(3.0)}
    one, zero = {"w": jnp.float32(1.0)}, {"w": jnp.float32(0.0)}
    _, pushforward = pj.linearize(lambda p, q: p["w"] * q["w"] ** 2, w, pj.tree.copy(w))
    for tangents, expected in (((one, one), 27), ((one, zero), 9), ((zero, one), 18)):
        assert float(pushforward(*tangents)) == expected


def test_donated_and_kept_stays_an_error() -> None:
    """One table spans all arguments of `jit`."""
    w = {"w": jnp.ones(3)}
    with pytest.raises(pydag.SharingError, match="donated"):
        pj.jit(lambda p, q: p["w"] + q["w"], donate_argnums=0)(w, w)
    assert pj.jit(lambda p, q: p is q)(w, w)


def test_a_deep_q_network_starts_as_its_target() -> None:
    """A run whose target is the model itself at first, and after each hard update, as in JAX."""
    optimizer = pj.optimizer(__import__("optax").sgd(0.01))

    def td(params: Any, target: Any, x: Any) -> Any:
        return (params["w"] * x - (target["b"] + 0.9 * target["w"] * x)) ** 2

    @pj.jit
    def step(state: Any, x: Any) -> Any:
        gradient = pj.grad(td)(state["params"], state["target"], x)
        updates, inner = optimizer.update(gradient, state["opt"], state["params"])
        params = pj.apply_updates(state["params"], updates)
        return {**state, "params": params, "opt": inner}

    params = {"w": jnp.float32(2.0), "b": jnp.float32(1.0)}
    state = {"params": params, "target": params, "opt": optimizer.init(params)}
    plain, target = 2.0, 2.0
    for i in range(4):
        x = float(i)
        plain, before = plain - 0.01 * 2 * (plain * x - 1 - 0.9 * target * x) * x, plain
        state = step(state, x)
        if i % 2:
            state["target"], target = state["params"], plain
        assert float(state["params"]["w"]) == pytest.approx(plain, rel=1e-5), before
