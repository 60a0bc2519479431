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


def sow(m: Any) -> None:
    m.kl = nnx.Intermediate((m.kernel[...].sum(),))


def add_static(m: Any) -> None:
    m.kl = "static"


def delete(m: Any) -> None:
    del m.bias


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (add_variable, r"What came or went: args\[0\]\.kl"),
        (sow, r"What came or went: args\[0\]\.kl"),
        (delete, r"What came or went: args\[0\]\.bias"),
        (add_static, r"'kl'"),
    ],
)
def test_another_structure_names_what_differs(change: Callable[[Any], None], what: str) -> None:
    """The error about a module has the attribute that came or went."""
    with pytest.raises(ValueError, match=what):
        pj.jit(change, update_argnums=0)(nnx.Linear(2, 2, rngs=nnx.Rngs(0)))
