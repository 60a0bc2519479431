# SPDX-License-Identifier: Apache-2.0
"""Derived leaves in files, views and explanations."""

from __future__ import annotations

import functools
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

import pydag
from pydag import jaxinterop as pj
from pydag.files.save import STRUCTURE

W = jnp.arange(12.0).reshape(4, 3)


def scaled(x: Any, by: float = 2.0) -> Any:
    return by * x


class Maker:
    """Has functions."""

    @staticmethod
    def static(x: Any) -> Any:
        return x


class Model(pj.Module):
    """A derived leaf, and what it is computed from."""

    def __init__(self, f: Any = jnp.transpose, **kwargs: Any) -> None:
        self.embed = W
        self.out = pj.Derived(f, self.embed, **kwargs)


FUNCTIONS: list[Any] = [
    jnp.transpose, jnp.exp, jnp.add, jnp.linalg.inv, jax.nn.relu, jax.nn.softplus, jax.nn.softmax,
    jax.lax.stop_gradient, np.exp, np.transpose, functools.partial(jnp.sum, axis=0),
    functools.partial(jnp.clip, max=functools.partial(jnp.clip, 1.0).args[0]),
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS)
def test_array_functions_of_jax_and_numpy_come_back(path: Path, f: Any) -> None:
    """Sources are written once, the function by its name; ties, structure and `f` come back."""
    model = Model(f)
    pj.save(path, model)
    assert list(load_file(path)) == ["embed"]
    for again in (pj.load(path), pj.load(path, model), pydag.files.load(path)):
        assert type(again.out) is pj.Derived
        assert again.out.sources[0] is again.embed
        assert pydag.dag_structure(again) == pydag.dag_structure(model)


def test_keyword_arguments_are_written(path: Path) -> None:
    """Numbers, text and tuples."""
    pj.save(path, Model(jnp.transpose, axes=(1, 0)))
    assert pj.load(path).out.kwargs == {"axes": (1, 0)}


def test_functions_of_ones_own_are_named_by_the_reader(path: Path) -> None:
    """Else the load says which function it is, where, and what to do."""
    pj.save(path, {"model": [Model(scaled, by=3.0)]})
    for load in (pj.load, pydag.files.load):
        with pytest.raises(ValueError, match=r"at tree\['model'\]\[0\]\.out") as caught:
            load(path)
        assert f"{__name__}:scaled" in str(caught.value)
        assert "functions=[scaled]" in str(caught.value)
        assert "like=" in str(caught.value)
        with pytest.raises(ValueError, match="scaled"):
            load(path, functions=[Maker.static])
        for functions in (scaled, [scaled, Maker.static]):
            again = load(path, functions=functions)["model"][0]
            assert again.out.f is scaled
    assert pj.resolved(pj.load(path, functions=scaled))["model"][0].out[0, 1] == 3.0


def test_partials_of_ones_own_functions(path: Path) -> None:
    """The function in it is what is named."""
    pj.save(path, Model(functools.partial(scaled, by=3.0)))
    with pytest.raises(ValueError, match="functions="):
        pj.load(path)
    assert pj.load(path, functions=scaled).out.f.keywords == {"by": 3.0}


def test_like_has_functions_of_its_own(path: Path) -> None:
    """Nothing has to be named; another function than the file's warns, and the code's counts."""
    pj.save(path, Model(scaled))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pj.load(path, Model(scaled)).out.f is scaled
    with pytest.warns(UserWarning, match=rf"tree\.out\.f: '{__name__}:scaled' in the file"):
        again = pj.load(path, Model(jnp.flip))
    assert again.out.f is jnp.flip
    assert again.out.sources[0] is again.embed


def test_a_lambda_is_refused_with_path_and_cure(path: Path) -> None:
    """Nothing is written. Without structure it is saved, and `like` has the function."""
    model = {"a": [Model(lambda x: x.T)]}
    with pytest.raises(TypeError, match=r"at tree\['a'\]\[0\]\.out") as caught:
        pj.save(path, model)
    assert "lambda" in str(caught.value)
    assert "define it in a module" in str(caught.value)
    assert not path.exists()
    pj.save(path, model, structure=False)
    assert pj.load(path, model)["a"][0].out.f is model["a"][0].out.f


@pytest.mark.parametrize(
    "name",
    [
        *("os:system", "builtins:eval", "numpy:load", "numpy:memmap", "numpy:savetxt"),
        *("numpy:frompyfunc", "jax.numpy:vectorize", "jax.numpy:load", "jax:pure_callback"),
        *("jax.numpy:linalg", "numpy:lib.format.read_array", "jax.numpy:", ":transpose", ""),
        *("jax.numpy:transpose.__call__", "pydag:clear_caches", "no_such_module:f"),
    ],
)
def test_no_other_function_is_found_for_a_file(path: Path, name: str) -> None:
    """A file that names anything else is refused, and nothing is imported or run for it."""
    pj.save(path, Model())
    pj.load(path)  # which imports what any file needs
    text = pydag.dag_structure(Model()).to_json()
    bad = text.replace("jax.numpy:transpose", name)
    assert bad != text
    with pytest.raises(ValueError, match="function"):
        pydag.PyDagSpec.from_json(bad)
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + size])
    header["__metadata__"][STRUCTURE] = header["__metadata__"][STRUCTURE].replace(
        "jax.numpy:transpose", name
    )
    new = json.dumps(header).encode()
    path.write_bytes(len(new).to_bytes(8, "little") + new + raw[8 + size :])
    before = set(sys.modules)
    for load in (pj.load, pydag.files.load):
        with pytest.raises(ValueError, match="function"):
            load(path)
    assert set(sys.modules) - before <= {"pydag.registry.known_functions"}


def test_a_view_shows_a_call() -> None:
    """A derived leaf is one row, with its sources; where one is a container, it has rows."""
    model: Any = {
        "embed": W,
        "out": pj.Derived(jnp.transpose, W, axes=(1, 0)),
        "nested": pj.Derived(jnp.exp, pj.Derived(jnp.log, jnp.ones(2)), 3),
        "tree": pj.Derived(scaled, {"a": W}),
        "partial": pj.Derived(functools.partial(scaled, by=3), W),
    }
    shown = str(pydag.view(model)).splitlines()
    assert shown[:-1] == [
        "dict",
        "├─ ['embed']: &0 f32[4,3]",
        "├─ ['nested']: exp(log(f32[2]), 3)",
        "├─ ['out']: transpose(*0, axes=(1, 0))",
        "├─ ['partial']: partial(scaled, by=3)(*0)",
        "└─ ['tree']: scaled(…)",
        "   └─ .sources: tuple",
        "      └─ [0]: dict",
        "         └─ ['a']: *0",
    ]
    assert " 3 leaves, " in shown[-1]
    assert "transpose(*0, axes=(1, 0))" in pydag.view(model)._repr_html_()
    assert "transpose(*0" in pydag.view(model).dot()


def test_a_difference_is_explained_by_the_function() -> None:
    """The errors about another function, and a tie that is cut, have the paths."""
    first = pydag.dag_structure(Model())
    other = pydag.explain(first, pydag.dag_structure(Model(jnp.flip)))
    assert "tree.out" in other
    assert "transpose" in other
    assert "flip" in other
    model = Model()
    model.embed = W + 1
    cut = pydag.explain(first, pydag.dag_structure(model))
    assert cut.startswith("tree.embed and tree.out.sources[0]")
    assert ".out: transpose(*0)" in str(cut.side_by_side())
