# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="attr-defined, no-untyped-call, assignment, misc"
"""Errors about modules of NNX that are updated and have another structure."""

from collections.abc import Callable
from typing import Any

import pytest

import pydag

nnx: Any = pytest.importorskip("flax.nnx")

import jax.numpy as jnp

from pydag import jaxinterop as pj


def test_another_class_is_an_error() -> None:
    """A Variable of another class is another structure."""

    def step(m: Any) -> None:
        m.kernel = nnx.BatchStat(m.kernel[...])

    with pytest.raises(ValueError, match=r"args\[0\]\.kernel(.|\n)*Param(.|\n)*BatchStat"):
        pj.jit(step, update_argnums=0)(nnx.Linear(2, 2, rngs=nnx.Rngs(0)))


class Tagged:
    def __init__(self, w: Any, tag: str) -> None:
        self.w, self.tag = w, tag


def test_aux_data_of_other_classes() -> None:
    """Other aux_data of a class with functions is another structure: never lost in silence."""
    pydag.register_pydag_node(
        Tagged,
        lambda t: ((t.w,), t.tag),
        lambda tag, children: Tagged(children[0], tag),
        namespace="tagged",
    )

    def step(tree: Any) -> None:
        tree["t"] = Tagged(tree["t"].w, "new")

    tree = {"t": Tagged(jnp.ones(2), "old")}
    with pytest.raises(ValueError, match=r"args\[0\]\['t'\]\n.*aux_data 'old'\n.*aux_data 'new'"):
        pj.jit(step, update_argnums=0, namespace="tagged")(tree)
    assert tree["t"].tag == "old"


def add_variable(m: Any) -> None:
    m.kl = nnx.Param(m.kernel[...])


def add_static(m: Any) -> None:
    m.kl = "static"


@pytest.mark.parametrize("change", [add_variable, add_static])
def test_another_structure_names_what_differs(change: Callable[[Any], None]) -> None:
    """The error about a module has the attribute, and nothing of what the module holds."""
    with pytest.raises(ValueError, match=r"only here: \.kl\n") as caught:
        pj.jit(change, update_argnums=0)(nnx.Linear(2, 2, rngs=nnx.Rngs(0)))
    text = str(caught.value)
    assert "first:  flax.nnx.nn.linear.Linear\n" in text
    assert "aux_data" not in text
    assert len(text) < 600


def test_a_module_without_static_attributes() -> None:
    """What `sow` adds to a module that has nothing but variables is named, too."""

    class Bare(nnx.Module):
        def __init__(self) -> None:
            self.w = nnx.Param(jnp.ones(2))

    def step(m: Any) -> None:
        m.kl = nnx.Intermediate((m.w[...].sum(),))

    with pytest.raises(ValueError, match=r"second: \S+Bare, only here: \.kl\n"):
        pj.jit(step, update_argnums=0)(Bare())


def test_a_lost_attribute_is_named() -> None:
    """So has the error about one that was deleted."""
    with pytest.raises(ValueError, match=r"first:  flax\S+Linear, only here: \.bias\n"):
        pj.jit(lambda m: delattr(m, "bias"), update_argnums=0)(nnx.Linear(2, 2, rngs=nnx.Rngs(0)))
