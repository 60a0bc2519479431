# SPDX-License-Identifier: Apache-2.0
"""PyTorch is imported by `pydag.integrations.torch`, and by nothing else."""

from operations import run_apart


def test_pydag_does_not_import_it() -> None:
    """The package, its files, views and NumPy's arrays don't; nor do saving and loading."""
    source = """
import os, sys, tempfile
import numpy as np
import pydag, pydag.files, pydag.integrations, pydag.integrations.numpy
path = os.path.join(tempfile.mkdtemp(), "x.safetensors")
w = np.ones((2, 2))
pydag.files.save(path, {"a": w, "b": w[:], "c": 3})
tree = pydag.files.load(path)
str(pydag.view(tree)), pydag.shared_objects(tree)
print("torch" in sys.modules, "jax" in sys.modules)
import pydag.integrations.torch
print("torch" in sys.modules, "jax" in sys.modules)
"""
    assert run_apart(source).splitlines() == ["False False", "True False"]
