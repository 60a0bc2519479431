# SPDX-License-Identifier: Apache-2.0
"""The examples in the docstrings of the new boundary."""

import doctest
import importlib
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import pydag

FOLDER = Path(pydag.__file__).parent
FILES = sorted((FOLDER / "_boundary").rglob("*.py"))
NAMES = [".".join(file.relative_to(FOLDER.parent).with_suffix("").parts) for file in FILES]


@pytest.mark.parametrize("name", [name.removesuffix(".__init__") for name in NAMES])
def test_docstring_examples_hold(name: str) -> None:
    """Every example in a docstring gives what it says. The usual imports are made already."""
    module = importlib.import_module(name)
    names = vars(module) | {"pydag": pydag, "jax": jax, "jnp": jnp}
    report: list[str] = []
    for test in doctest.DocTestFinder().find(module, globs=names):
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
        runner.run(test, out=report.append)
    assert not "".join(report)
