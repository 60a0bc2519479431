# SPDX-License-Identifier: Apache-2.0
"""Classes as distrax has them: JAX pytrees of their own, with methods that JAX traces."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import tree_util

import pydag.jaxinterop as pj


@tree_util.register_pytree_node_class
class Affine:
    """A bijector: parameters are children, and the rest is configuration."""

    def __init__(self, shift: Any, scale: Any, event_ndims: int = 0) -> None:
        self.shift, self.scale, self.event_ndims = shift, scale, event_ndims

    def tree_flatten(self) -> tuple[Any, Any]:
        return (self.shift, self.scale), self.event_ndims

    @classmethod
    def tree_unflatten(cls, event_ndims: int, children: Any) -> "Affine":
        shift, scale = children
        return cls(shift, scale, event_ndims)

    def forward_and_log_det(self, x: Any) -> tuple[Any, Any]:
        return x * self.scale + self.shift, jnp.log(jnp.abs(self.scale)) * jnp.ones_like(x)


@tree_util.register_pytree_node_class
class Chain:
    """Bijectors one after the other, which may be one and the same."""

    def __init__(self, bijectors: Any) -> None:
        self.bijectors = list(bijectors)

    def tree_flatten(self) -> tuple[Any, Any]:
        return (self.bijectors,), None

    @classmethod
    def tree_unflatten(cls, _: Any, children: Any) -> "Chain":
        return cls(*children)

    def forward_and_log_det(self, x: Any) -> tuple[Any, Any]:
        total = jnp.zeros_like(x)
        for bijector in self.bijectors:
            x, log_det = bijector.forward_and_log_det(x)
            total = total + log_det
        return x, total


def tied() -> Chain:
    layer = Affine(jnp.array(1.0), jnp.array(2.0), event_ndims=3)
    return Chain([layer, layer])


X = jnp.array([0.0, 1.0])


def test_methods_are_traced() -> None:
    """A method is compiled, mapped and differentiated by as in JAX, ties kept."""
    chain = tied()
    y, log_det = pj.jit(lambda chain, x: chain.forward_and_log_det(x))(chain, X)
    assert (y.tolist(), log_det.tolist()) == ([3.0, 7.0], pytest.approx([2 * 0.6931472] * 2))
    y, _ = pj.jit(Chain.forward_and_log_det)(chain, X)
    assert y.tolist() == [3.0, 7.0]
    y, _ = pj.vmap(lambda c, x: c.forward_and_log_det(x), in_axes=(None, 0))(chain, X)
    assert y.tolist() == [3.0, 7.0]


def test_a_chain_is_trained() -> None:
    """A bijector that stands twice in a chain is one: its gradient is the sum of both uses."""

    def loss(chain: Chain) -> Any:
        return jnp.sum(chain.forward_and_log_det(X)[0])

    gradient = pj.jit(pj.grad(loss))(tied())
    first, second = gradient.bijectors
    assert first is second
    assert (float(first.shift), float(first.scale)) == (6.0, 6.0)
    assert first.event_ndims == 3
    new = jax.tree.map(lambda x: x, gradient)  # to JAX they are two
    assert new.bijectors[0] is not new.bijectors[1]
