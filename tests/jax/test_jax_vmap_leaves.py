# SPDX-License-Identifier: Apache-2.0
"""`vmap` with a tree of axes again and again: what it keeps of a call holds for the next one."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parallel import checked, outcomes

from pydag import jaxinterop as pj

X = jnp.arange(6.0).reshape(2, 3)
AXES = ({"w": 0, "b": 1},)


def tree() -> dict[str, Any]:
    """Two arrays: the first is mapped over axis 0, the second over axis 1, both of size 2."""
    return {"w": X, "b": X.T}


def test_a_function_runs_once_for_each_call_that_fails_inside() -> None:
    """An error of its own isn't taken for one of JAX's about what can't be mapped."""
    calls: list[str] = []

    def f(t: Any) -> Any:
        calls.append("called")
        raise ValueError("vmap got inconsistent sizes")

    mapped = pj.vmap(f, in_axes=AXES)
    for count in (1, 2):
        with pytest.raises(ValueError, match="inconsistent sizes"):
            mapped(tree())
        assert len(calls) == count


def test_errors_before_the_function_runs_name_the_leaf() -> None:
    """Each time, and nothing is called."""
    calls: list[str] = []
    mapped = pj.vmap(lambda t: calls.append("called"), in_axes=AXES)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"args\[0\]\['b'\] has size 3 along axis 1") as raised:
            mapped({"w": X, "b": X + 0})
        assert raised.value.__context__ is None
    assert calls == []
    with pytest.raises(ValueError, match=r"map args\[0\]\['b'\] over axis 1, .* shape is \(2,\)"):
        mapped({"w": X, "b": jnp.ones(2)})


def test_a_call_within_a_call_may_fail() -> None:
    """The outer function goes on, runs once, and its own error stays its own."""
    calls: list[str] = []
    inner = pj.vmap(lambda t: t["w"] + t["b"], in_axes=AXES)

    def f(t: Any) -> Any:
        calls.append("called")
        with pytest.raises(ValueError, match=r"inconsistent|rank"):
            inner({"w": jnp.ones((2, 2)), "b": jnp.ones((2, 3))})
        inside = inner({"w": X, "b": X.T})
        if len(calls) == 2:
            raise TypeError("the second call fails")
        return t["w"] + inside.sum()

    mapped = pj.vmap(f, in_axes=AXES)
    assert mapped(tree()).tolist() == [[30.0, 31.0, 32.0], [33.0, 34.0, 35.0]]
    with pytest.raises(TypeError, match="the second call fails"):
        mapped(tree())
    assert len(calls) == 2


def test_leaves_may_change_their_class_from_call_to_call() -> None:
    """Arrays of JAX's and of NumPy's, weak ones, text, a tracer; and back."""
    mapped = pj.vmap(lambda t: (t["w"], t["b"]), in_axes=AXES)
    ours: list[Any] = [
        tree(),
        {"w": np.asarray(X), "b": np.asarray(X.T)},
        {"w": X, "b": "text"},
        tree(),
    ]
    for given in ours:
        w, b = mapped(given)
        assert w.tolist() == X.tolist()
        assert b == "text" if type(b) is str else b.tolist() == X.tolist()
    total = jax.jit(lambda t: mapped(t)[0].sum() + mapped(tree())[1].sum())(tree())
    assert float(total) == 30.0
    gradient = jax.grad(lambda t: (mapped(t)[1] ** 2).sum())(tree())
    assert gradient["b"].tolist() == (2 * X.T).tolist()


def test_a_tree_of_axes_may_be_changed_between_calls() -> None:
    """The axes are those that it has at the call."""
    axes: Any = {"w": 0, "b": 1}
    mapped = pj.vmap(lambda t: t["w"].sum() + t["b"].sum(), in_axes=(axes,))
    assert mapped(tree()).tolist() == [6.0, 24.0]
    axes["b"] = None
    assert mapped(tree()).tolist() == [18.0, 27.0]
    axes["w"] = -2
    assert mapped(tree()).tolist() == [18.0, 27.0]


def test_results_that_are_arrays_keep_their_form() -> None:
    """An array, a list, a tuple; one array twice is one array; an array that isn't mapped."""
    assert pj.vmap(lambda t: t["w"], in_axes=AXES)(tree()).tolist() == X.tolist()
    as_list = pj.vmap(lambda t: [t["w"], t["b"]], in_axes=AXES)(tree())
    assert type(as_list) is list
    assert [x.shape for x in as_list] == [(2, 3), (2, 3)]
    one, again = pj.vmap(lambda t: (t["w"], t["w"]), in_axes=AXES)(tree())
    assert one is again
    assert pj.vmap(lambda t: X, in_axes=AXES)(tree()).shape == (2, 2, 3)
    assert pj.vmap(lambda t: t["w"], out_axes=1, in_axes=AXES)(tree()).shape == (3, 2)


def test_threads_that_fail_and_threads_that_do_not() -> None:
    """What one thread's call did is not taken for what another's did."""
    mapped = pj.vmap(lambda t: t["w"] + t["b"], in_axes=AXES)

    def work(i: int) -> None:
        for _ in range(20):
            if i % 2:
                assert mapped(tree()).tolist() == (2 * X).tolist()
            else:
                with pytest.raises(ValueError, match="inconsistent"):
                    mapped({"w": X, "b": X + 0})

    checked(outcomes(work, 4))
