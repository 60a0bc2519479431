# SPDX-License-Identifier: Apache-2.0
"""`ties`: which names of a module, of a state dict, are one tensor."""

import json
import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch_models import LANGUAGE, MODELS, REPEATED, Language, Renamed, Repeated

import pydag
from pydag import CycleError
from pydag.integrations.torch import keeping_ties, module_tree, ties
from pydag.integrations.torch.given import named_tensors

models = pytest.mark.parametrize(("make", "tied"), MODELS)


@models
def test_the_names_that_are_one(make: Any, tied: object) -> None:
    """Parameters, then buffers, in the module's order, all names of each."""
    assert ties(make()) == tied


@models
def test_a_module_on_meta(make: Any, tied: object) -> None:
    """There no tensor has memory; two that have one shape aren't one for that."""
    with torch.device("meta"):
        model = make()
    assert ties(model) == tied
    assert as_sets(ties(model.state_dict())) == as_sets(tied)


def as_sets(groups: Any) -> set[frozenset[str]]:
    return set(map(frozenset, groups))


@models
@pytest.mark.parametrize("keep_vars", [False, True])
def test_a_state_dict(make: Any, tied: object, keep_vars: bool) -> None:
    """A state dict makes new tensors, which share memory; its order is by module."""
    model = make()
    assert as_sets(ties(model.state_dict(keep_vars=keep_vars))) == as_sets(tied)
    copied = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert ties(copied) == ()


def test_a_saved_answer() -> None:
    """What `ties` returned passes unchanged, from JSON, too."""
    assert ties(LANGUAGE) == LANGUAGE
    assert ties(json.loads(json.dumps(REPEATED))) == REPEATED
    assert ties(()) == ties([]) == ()


@models
def test_a_tree(make: Any, tied: object) -> None:
    """The tree of a module has its ties, and so has what `dag_map` makes of such trees."""
    trees = [module_tree(make()) for _ in range(3)]
    stacked = pydag.dag_map(lambda *tensors: torch.stack(tensors).detach(), *trees)
    counts = pydag.dag_map(lambda tensor: np.ones(tensor.shape), trees[0])
    for tree in (trees[0], stacked, counts):
        assert as_sets(ties(tree)) == as_sets(tied)
    first, second = pydag.dag_partition(lambda tensor: tensor.ndim == 2, trees[0])
    assert as_sets(ties(first)) | as_sets(ties(second)) == as_sets(tied)


def test_arrays_of_numpy_in_a_state_dict() -> None:
    """Such arrays are tied as other readers of files give them."""
    w = np.ones((2, 2), np.float32)
    assert ties({"a": w, "b": w[:], "c": w.T, "d": w.copy(), "e": torch.from_numpy(w)}) == (
        ("a", "b", "e"),
    )


def test_two_parameters_of_one_memory() -> None:
    """The two are one, whatever objects stand for it; a transposed one is not."""
    model = Language(tied=False)
    model.head.weight = nn.Parameter(model.embed.weight.data)
    model.block.weight = nn.Parameter(model.block.weight.data.T)
    assert ties(model) == LANGUAGE


def test_a_parameter_that_is_a_buffer_elsewhere() -> None:
    """The tie is found by object and by memory."""
    model = nn.Module()
    model.w = nn.Parameter(torch.ones(3))
    model.register_buffer("same", model.w)
    model.register_buffer("view", model.w.data)
    assert ties(model) == (("w", "same", "view"),)


def test_wrapped_and_parametrized_modules() -> None:
    """Names are those that the module has then."""
    model = Language()
    assert ties(nn.DataParallel(model)) == (("module.embed.weight", "module.head.weight"),)
    assert ties(torch.compile(model)) == (("_orig_mod.embed.weight", "_orig_mod.head.weight"),)
    nn.utils.parametrizations.orthogonal(model.block)
    nn.utils.parametrize.register_parametrization(model.head, "weight", nn.Identity())
    assert ties(model) == (("embed.weight", "head.parametrizations.weight.original"),)


def test_what_is_no_tensor_in_a_state_dict() -> None:
    """Extra state is passed over."""
    model = Language()
    state = {**model.state_dict(), "_extra_state": {"version": 3}}
    assert ties(state) == LANGUAGE


def test_what_is_no_module() -> None:
    """An error says what is wanted, and where in a checkpoint it is."""
    model = Language()
    for wrong in (3, "text", None, [model], ["a", "b"], list(model.parameters())):
        with pytest.raises(TypeError, match="a module, a state dict, or what `ties` returned"):
            ties(wrong)
    with pytest.raises(TypeError, match="give its item 'model'"):
        ties({"step": 3, "model": model.state_dict()})
    with pytest.raises(TypeError, match=r"Read the file first: pydag\.files\.load\(path\)"):
        ties("model.safetensors")
    with pytest.raises(TypeError, match="give its item 'net'"):
        ties({"net": model})


def random_module(rng: random.Random, depth: int = 4) -> Any:
    """Modules with shared parts, parameters and buffers that are None, and none at all."""
    module, parts = nn.Module(), [nn.Linear(2, 2, bias=rng.random() < 0.5), nn.ReLU()]
    for name in "abc":
        kind = rng.randrange(5)
        if kind == 0:
            module.register_parameter(name, rng.choice([None, nn.Parameter(torch.ones(2))]))
        elif kind == 1:
            module.register_buffer(name, rng.choice([None, torch.ones(2)]), rng.random() < 0.5)
        elif kind == 2:
            module.add_module(name, rng.choice([None, rng.choice(parts)]))
        elif depth:
            parts.append(random_module(rng, depth - 1))
            module.add_module(name, rng.choice(parts))
    return module


@pytest.mark.parametrize("seed", range(40))
def test_names_are_those_of_pytorch(seed: int) -> None:
    """The same names in the same order, with the same tensors, in modules with shared parts."""
    module = random_module(random.Random(seed))
    expected = dict(module.named_parameters(remove_duplicate=False))
    expected |= dict(module.named_buffers(remove_duplicate=False))
    found = named_tensors(module)
    assert list(found) == list(expected)
    assert all(found[name] is tensor for name, tensor in expected.items())


def test_names_of_a_module_with_functions_of_its_own() -> None:
    """The names are those that its own `named_parameters` gives."""
    assert ties(Renamed(Language())) == LANGUAGE


def test_only_tensors_that_meet_are_described(monkeypatch: Any) -> None:
    """Tensors meet by object, then by address: ordinary ties have no memory described."""

    def fail(tensor: Any, on_meta: bool = False) -> Any:
        raise AssertionError(f"described: {tensor}")

    monkeypatch.setattr("pydag.integrations.torch.identity.memory_of", fail)
    model = Repeated()
    assert ties(model) == REPEATED
    module_tree(model)
    with keeping_ties(model):
        model.load_state_dict(Repeated().state_dict())
    with torch.device("meta"):
        assert ties(Repeated()) == REPEATED
    with pytest.raises(AssertionError, match="described"):
        ties(model.state_dict())


def test_a_module_within_itself() -> None:
    """An error names both paths."""
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2)))
    model[0].add_module("up", model[0])
    with pytest.raises(CycleError, match=r"0\.up is the module that contains it: 0$"):
        ties(model)


def test_nothing_changes() -> None:
    """The module keeps its tensors and their values."""
    model = Repeated()
    before = {name: id(tensor) for name, tensor in model.state_dict(keep_vars=True).items()}
    ties(model)
    assert {n: id(t) for n, t in model.state_dict(keep_vars=True).items()} == before
