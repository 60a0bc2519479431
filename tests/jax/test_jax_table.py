# SPDX-License-Identifier: Apache-2.0
"""The table of wrappers in tests/support is that of the package and of the pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest
from wrappers import APART, WRAPPERS

from pydag import jaxinterop

ROOT = Path(__file__).parents[2]
TABLE = {*WRAPPERS, *APART}


def test_it_has_all_wrappers() -> None:
    """Whatever `jaxinterop` shows of its rooms of wrappers, and nothing else."""
    shown = {name: getattr(jaxinterop, name) for name in jaxinterop.__all__}
    rooms = ("pydag.jaxinterop.wrappers.", "pydag.jaxinterop.compiled.jit")
    found = {
        n for n, thing in shown.items() if str(getattr(thing, "__module__", "")).startswith(rooms)
    }
    assert found == TABLE
    assert not WRAPPERS.keys() & APART.keys()


def named_in(text: str) -> set[str]:
    return set(re.findall(r"`([a-z_.]+)`", text))


def test_the_list_of_functions_names_them() -> None:
    """In the row of JAX's functions; `keep_sharing` has one of its own."""
    [row] = re.findall(
        r"^\| `pydag.jaxinterop`: (.*?) \|", (ROOT / "docs/functions.md").read_text("utf-8"), re.M
    )
    assert named_in(row) == TABLE - {"keep_sharing"}


@pytest.mark.parametrize("name", APART)
def test_inside_and_outside(name: str) -> None:
    """What is one object outside is one inside, and the other way round."""
    w = jnp.full((2, 2), 3.0)
    seen: list[bool] = []

    def double(tree: Any) -> Any:
        seen.append(tree["a"] is tree["b"][0])
        assert (tree["name"], tree["function"]) == ("net", jnp.sin)
        twice = 2 * tree["a"]
        return {**tree, "a": twice, "b": [twice]}

    out = APART[name](double)({"a": w, "b": [w], "name": "net", "function": jnp.sin})
    assert seen
    assert all(seen)
    assert out["a"] is out["b"][0]
    assert (out["name"], out["function"]) == ("net", jnp.sin)
    assert jnp.array_equal(jnp.asarray(out["a"]), 2 * w)
