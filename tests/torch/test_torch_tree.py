# SPDX-License-Identifier: Apache-2.0
"""`module_tree` and `load_module_tree`: a module as a DAG, and values back into it."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch_models import MODELS, Language, Repeated, Translator, bytes_of

import pydag
from pydag import CycleError, SharingError
from pydag.integrations.torch import (
    check_tied_weights_keys,
    fsdp_groups,
    keeping_ties,
    load_module_tree,
    module_tree,
    tied_weights_keys,
    ties,
)

models = pytest.mark.parametrize(("make", "tied"), MODELS)


def at(tree: Any, name: str) -> Any:
    """What stands in a tree under a dotted name."""
    for part in name.split("."):
        tree = tree[part]
    return tree


@models
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_the_tree_has_the_tensors_of_the_module(make: Any, tied: Any, device: str) -> None:
    """Each under each of its names, the very objects, and each once among the leaves."""
    with torch.device(device):
        model = make()
    tree = module_tree(model)
    named = dict(model.named_parameters(remove_duplicate=False))
    named |= dict(model.named_buffers(remove_duplicate=False))
    assert all(at(tree, name) is tensor for name, tensor in named.items())
    assert len(pydag.dag_leaves(tree)) == len(named) - sum(len(group) - 1 for group in tied)
    assert pydag.dag_structure(tree) == pydag.dag_structure(module_tree(make()))


def test_modules_that_hold_nothing_are_left_out() -> None:
    """Activations are no part of the tree; nor are parameters that are None."""
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU(), nn.Sequential(nn.Dropout()))
    assert module_tree(model) == {"0": {"weight": model[0].weight}}
    assert module_tree(nn.ReLU()) == {}


def test_shared_modules_are_shared_nodes() -> None:
    """The tree is as large as the module, not as the paths through it."""
    block: Any = nn.Linear(2, 2)
    for _ in range(40):
        block = nn.ModuleList([block, block])
    tree = module_tree(block)
    assert pydag.dag_structure(tree).num_paths == 2 * 2**40
    assert len(pydag.shared_objects(tree)) == 40
    load_module_tree(block, pydag.dag_map(torch.zeros_like, tree))
    assert [p.abs().sum().item() for p in block.parameters()] == [0.0, 0.0]


def test_two_tensors_of_one_memory_are_one_leaf() -> None:
    """The parameter, where one of them is a parameter."""
    model = Language(tied=False)
    model.head.weight = nn.Parameter(model.embed.weight.data)
    model.register_buffer("view", model.embed.weight.data)
    tree = module_tree(model)
    assert tree["view"] is tree["head"]["weight"] is tree["embed"]["weight"] is model.embed.weight


def test_a_module_within_itself() -> None:
    """An error names both paths."""
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2)))
    model[0].add_module("up", model[0])
    with pytest.raises(CycleError, match=r"0\.up is the module that contains it: 0$"):
        module_tree(model)
    model = nn.Sequential(nn.Linear(2, 2))
    model[0].add_module("up", model)
    with pytest.raises(CycleError, match=r"0\.up is the module that contains it: the module its"):
        module_tree(model)


def test_pydags_functions_take_it() -> None:
    """Maps keep ties, counts have each parameter once, and structures are explained."""
    model = Language()
    tree = module_tree(model)
    half = pydag.dag_map(lambda x: x.detach().half(), tree)
    assert half["head"]["weight"] is half["embed"]["weight"]
    assert sum(map(torch.numel, pydag.dag_leaves(tree))) == 7 * 4 + 4 * 4 + 4
    [shared] = pydag.shared_objects(tree)
    assert shared.paths == (("embed", "weight"), ("head", "weight"))
    assert str(
        pydag.explain(
            pydag.dag_structure(tree), pydag.dag_structure(module_tree(Language(tied=False)))
        )
    ) == (
        "tree['embed']['weight'] and tree['head']['weight']\n"
        "  first:  one object\n  second: two objects"
    )
    lines = str(pydag.view(tree)).splitlines()
    assert "│  └─ ['weight']: &0 f32[7,4]" in lines
    assert "   └─ ['weight']: *0" in lines


@models
def test_values_go_back(make: Any, tied: Any) -> None:
    """The module keeps its tensors and ties, and has the values of the tree."""
    model, source = make(), make()
    kept = {name: id(tensor) for name, tensor in model.state_dict(keep_vars=True).items()}
    load_module_tree(model, module_tree(source))
    assert bytes_of(model) == bytes_of(source)
    assert ties(model) == tied
    assert {n: id(t) for n, t in model.state_dict(keep_vars=True).items()} == kept


def test_an_average_of_weights() -> None:
    """The average is of the parameters and not of the counters, each once, tied as the model."""
    model, average = Repeated(), Repeated()
    old = {n: t.detach().clone() for n, t in average.named_parameters()}

    def mean(a: Any, b: Any) -> Any:
        return 0.75 * a + 0.25 * b if a.is_floating_point() else b

    with torch.no_grad():
        load_module_tree(average, pydag.dag_map(mean, module_tree(average), module_tree(model)))
    for name, parameter in average.named_parameters():
        assert torch.equal(parameter, 0.75 * old[name] + 0.25 * model.get_parameter(name))
    assert ties(average) == ties(model)


def test_names_with_dots() -> None:
    """A state dict is taken, and one of a part; one of the names of a tie is enough."""
    model, source = Language(), Language()
    state = source.state_dict()
    del state["embed.weight"]
    load_module_tree(model, state)
    assert bytes_of(model) == bytes_of(source)
    both = nn.ModuleDict({"a": Language(), "b": Language()})
    load_module_tree(both, {"a": source.state_dict(), "b": module_tree(source)})
    assert bytes_of(both["a"]) == bytes_of(both["b"]) == bytes_of(source)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float8_e5m2])
def test_arrays_of_numpy(dtype: Any) -> None:
    """Arrays may be read-only, in another byte order, or of a type of another package."""
    pytest.importorskip("ml_dtypes")
    model, source = Language(tied=False).to(dtype), Language(tied=False).to(dtype)
    name = str(dtype).removeprefix("torch.")
    arrays = {
        key: np.frombuffer(data, numpy_dtype(name)).reshape(model.state_dict()[key].shape)
        for key, data in bytes_of(source).items()
    }
    assert not arrays["embed.weight"].flags.writeable
    load_module_tree(model, arrays)
    assert bytes_of(model) == bytes_of(source)
    if name.startswith("float") and "_" not in name:
        flipped = {
            key: a.astype(a.dtype.newbyteorder(">"))[::-1][::-1] for key, a in arrays.items()
        }
        load_module_tree(model, flipped)
        assert bytes_of(model) == bytes_of(source)


def numpy_dtype(name: str) -> Any:
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name, name))


def test_values_that_are_the_modules_own_memory() -> None:
    """Nothing is overwritten before it is read: two weights change places, one is transposed."""
    model = nn.ModuleList([nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)])
    a, b = (part.weight.detach().clone() for part in model)
    tree = module_tree(model)
    load_module_tree(model, {"0": tree["1"], "1": tree["0"]})
    assert torch.equal(model[0].weight, b)
    assert torch.equal(model[1].weight, a)
    load_module_tree(model, {"0": {"weight": tree["0"]["weight"].T}, "1": tree["1"]})
    assert torch.equal(model[0].weight, b.T)
    arrays = {"0": {"weight": model[1].weight.detach().numpy().T}, "1": {"weight": a}}
    load_module_tree(model, arrays)
    assert torch.equal(model[0].weight, a.T)


def wrong_trees(model: Any) -> list[tuple[Any, type[Exception], str]]:
    """Trees with one mistake each, which comes last, and what is said about it."""
    tree = pydag.dag_map(lambda x: torch.zeros_like(x), module_tree(model))
    head = tree["head"]

    def with_head(**values: Any) -> Any:
        return {**tree, "head": {**head, **values}}

    return [
        (
            with_head(weight=torch.ones(7, 4)),
            SharingError,
            r"^shared\.weight and head\.weight are one tensor of the module, and the tree has two",
        ),
        (
            with_head(bias=torch.ones(8)),
            ValueError,
            r"^head\.bias is float32\[7\], and float32\[8\] in the tree$",
        ),
        (
            with_head(bias=torch.ones(7).half()),
            ValueError,
            r"^head\.bias is float32\[7\], and float16\[7\] in the tree; cast=True converts it$",
        ),
        (
            with_head(bias=torch.ones(7, device="meta")),
            ValueError,
            r"^head\.bias of the tree has no",
        ),
        (with_head(bias=[1.0] * 7), TypeError, r"^head\.bias must be an array"),
        (
            with_head(bias={"a": torch.ones(7)}),
            ValueError,
            r"^head\.bias is a tensor of the module",
        ),
        (with_head(scale=torch.ones(7)), ValueError, r"^the module has no head\.scale$"),
        ({**tree, "head": torch.ones(7)}, ValueError, r"^head is a module of the module"),
        ({**tree, "tail": {"weight": torch.ones(7)}}, ValueError, "^the module has no tail$"),
        ({**tree, "head": {"weight": head["weight"]}}, ValueError, r"no value for head\.bias$"),
        (
            {},
            ValueError,
            r"^the tree has no value for shared\.weight, encoder\.positions, .*, head\.bias$",
        ),
    ]


@pytest.mark.parametrize("number", range(11))
def test_all_or_nothing(number: int) -> None:
    """A tree that doesn't fit is an error that names the place, and nothing is written."""
    model = Translator()
    before = bytes_of(model)
    tree, error, message = wrong_trees(model)[number]
    with pytest.raises(error, match=message):
        load_module_tree(model, tree)
    assert bytes_of(model) == before


@pytest.mark.parametrize(
    "call",
    [
        lambda model, state: module_tree(state),
        lambda model, state: load_module_tree(state, model),
        lambda model, state: tied_weights_keys(state),
        lambda model, state: check_tied_weights_keys(state),
        lambda model, state: fsdp_groups(state, []),
        lambda model, state: keeping_ties(state).__enter__(),
    ],
)
def test_what_is_no_module(call: Any) -> None:
    """A state dict in the place of a module is an error that says what to give."""
    model = Language()
    with pytest.raises(TypeError, match=r"takes a torch\.nn\.Module.*\n  Give the module itself"):
        call(model, model.state_dict())


def test_a_module_as_the_tree() -> None:
    """An error says what to write."""
    with pytest.raises(TypeError, match=r"module_tree\(other\) is needed"):
        load_module_tree(Language(), Language())


def test_another_dtype() -> None:
    """The array is converted where that is asked for."""
    model = Language()
    tree = pydag.dag_map(lambda x: x.detach().double() * 0 + 0.5, module_tree(model))
    load_module_tree(model, tree, cast=True)
    assert model.head.weight.dtype == torch.float32
    assert set(model.head.weight.flatten().tolist()) == {0.5}


def test_what_can_not_be_written() -> None:
    """A module on `meta`, one made in inference mode, and an expanded tensor can't be written."""
    source = Language()
    with torch.device("meta"):
        model = Language()
    with pytest.raises(ValueError, match=r"^embed\.weight of the module has no values, as on meta"):
        load_module_tree(model, module_tree(source))
    with torch.inference_mode():
        model = Language()
        load_module_tree(model, module_tree(source))
    with pytest.raises(ValueError, match="was made in inference mode"):
        load_module_tree(model, module_tree(source))
    model = nn.Module()
    model.w = nn.Parameter(torch.ones(1).expand(3))
    with pytest.raises(ValueError, match="an expanded tensor"):
        load_module_tree(model, {"w": torch.ones(3)})
