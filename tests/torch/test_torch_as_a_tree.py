# SPDX-License-Identifier: Apache-2.0
"""A module that is given as a tree: no function of pydag takes it for one leaf without a word."""

import copy
from abc import ABC
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch_models import Language

import pydag
from pydag.files import save
from pydag.integrations.torch import module_tree

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "flatten": pydag.dag_flatten,
    "leaves": pydag.dag_leaves,
    "iter": lambda tree: list(pydag.dag_iter(tree)),
    "structure": pydag.dag_structure,
    "paths": pydag.dag_paths,
    "map": lambda tree: pydag.dag_map(lambda x: x, tree),
    "map of two": lambda tree: pydag.dag_map(lambda x, y: x, tree, tree),
    "map in place": lambda tree: pydag.dag_map_(lambda x: x, tree),
    "reduce": lambda tree: pydag.dag_reduce(max, tree),
    "any": pydag.dag_any,
    "copy": pydag.dag_copy,
    "fold": lambda tree: pydag.dag_fold(lambda node, children: node, tree),
    "rewrite": lambda tree: pydag.dag_rewrite(lambda node: node, tree),
    "intern": pydag.dag_intern,
    "mask": lambda tree: pydag.dag_mask(tree, "*"),
    "partition": lambda tree: pydag.dag_partition(nn.Parameter, tree),
    "deref": pydag.deref,
    "update": lambda tree: pydag.dag_update(tree, tree),
    "tie": lambda tree: pydag.tie(tree, ("embed",), ("head",)),
    "untie": lambda tree: pydag.untie(tree, ("head",)),
    "shared_objects": pydag.shared_objects,
    "view": pydag.view,
    "explain": lambda tree: pydag.explain(tree, tree),
    "a predicate": lambda tree: pydag.dag_leaves(tree, is_leaf=lambda x: x is None),
    "save": lambda tree: save("never.safetensors", tree),
}


class Abstract(nn.Linear, ABC):
    """Its class is made by a metaclass."""


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_module_is_no_tree(function: Callable[[Any], Any]) -> None:
    """The error names the function that makes a tree of it, however often it is called."""
    for module in (Language(), Language(), Abstract(2, 2)):
        with pytest.raises(
            TypeError, match=r"is a torch.nn.Module .*\n.*torch\.module_tree\("
        ) as e:
            function(module)
        assert "module.state_dict()" in str(e.value)


def test_a_module_in_a_tree_is_a_leaf() -> None:
    """In a container, and where a predicate wants it so, it is one like any other object."""
    model = Language()
    assert pydag.dag_leaves([model]) == [model]
    assert pydag.dag_leaves(model, is_leaf=lambda x: isinstance(x, nn.Module)) == [model]
    assert pydag.dag_map(lambda x: 1, {"a": model}) == {"a": 1}
    assert pydag.dag_map(lambda x, y: y, 1, model) is model
    assert pydag.dag_fold(lambda node, children: model, [1]) is model
    assert pydag.dag_rewrite({list: lambda node: model}, [1]) is model
    assert pydag.prefix_errors([model], [[1]]) == []
    assert pydag.dag_is_leaf(model)
    assert pydag.dag_leaves(nn.Linear) == [nn.Linear]


def test_a_registered_module_is_a_node() -> None:
    """A module is a node where somebody said what its children are."""

    class Own(nn.Linear):
        pass

    pydag.register_pydag_node(
        Own, lambda x: (list(x.parameters()), None), lambda _, x: x, namespace="own"
    )
    own = Own(2, 2)
    assert pydag.dag_leaves(own, namespace="own") == [own.weight, own.bias]
    with pytest.raises(TypeError, match="module_tree"):
        pydag.dag_leaves(own)
    assert len(pydag.dag_leaves(module_tree(own))) == 2


def test_deep_copy() -> None:
    """A deep copy has tensors of its own, as `copy.deepcopy` makes them, each object once."""
    weight = nn.Parameter(torch.ones(2, 3), requires_grad=False)
    view = torch.arange(6.0).as_strided((2, 3), (1, 2))
    tree: dict[str, Any] = {
        "weight": weight,
        "tied": [weight],
        "view": view,
        "module": Language(),
        "n": 1,
    }
    out, expected = pydag.dag_copy(tree, deep=True), copy.deepcopy(tree)
    assert out["weight"] is out["tied"][0] is not weight
    for name in ("weight", "view"):
        one, other = out[name], expected[name]
        assert type(one) is type(other)
        assert (one.requires_grad, one.stride()) == (other.requires_grad, other.stride())
        assert torch.equal(one, other)
        assert one.data_ptr() != tree[name].data_ptr()
    assert out["module"].head.weight is out["module"].embed.weight
