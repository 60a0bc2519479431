# SPDX-License-Identifier: Apache-2.0
"""`fsdp_groups`: what FSDP2 must wrap together, and that ties outlive it then."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch_models import LANGUAGE, Language, Repeated, Translator

from pydag.integrations.torch import fsdp_groups, keeping_ties, tie_changes, ties


def test_modules_that_share_a_parameter() -> None:
    """Such modules go together; modules may be given or named, and one on `meta` does."""
    with torch.device("meta"):
        model = Language()
    wanted = ((("embed", "head"), ("embed.weight", "head.weight")),)
    assert fsdp_groups(model, ["embed", "block", "head"]) == wanted
    assert fsdp_groups(model, [model.head, model.block, model.embed]) == wanted
    assert fsdp_groups(model, ["embed", model.head]) == wanted


def test_the_model_itself() -> None:
    """The model is in the group where one end isn't in any wrapped module."""
    names = ("embed.weight", "head.weight")
    assert fsdp_groups(Language(), ["embed"]) == fsdp_groups(Language(), ["", "embed"])
    assert fsdp_groups(Language(), ["embed"]) == ((("", "embed"), names),)


def test_the_innermost_wrapped_module_counts() -> None:
    """This module has the parameter, since it is wrapped first."""
    model = Translator()
    names = ("shared.weight", "encoder.embed.weight", "decoder.embed.weight", "head.weight")
    assert fsdp_groups(model, ["shared", "encoder", "decoder", "head"]) == (
        (("shared", "encoder", "decoder", "head"), names),
    )
    assert fsdp_groups(model, ["decoder.embed", "encoder", "decoder"]) == (
        (("", "encoder", "decoder.embed"), names),
    )


def test_two_ties_with_a_module_in_common() -> None:
    """Such ties are one group, with the names of both; ties apart are two groups."""
    model = nn.ModuleList(nn.Linear(2, 2) for _ in range(6))
    model[1].weight = model[0].weight
    model[3].weight = model[2].weight
    apart = fsdp_groups(model, list(model))
    assert apart == (
        (("0", "1"), ("0.weight", "1.weight")),
        (("2", "3"), ("2.weight", "3.weight")),
    )
    model[2].bias = model[1].bias
    [(modules, names)] = fsdp_groups(model, list(model))
    assert modules == ("0", "1", "2", "3")
    assert set(names) == {f"{i}.weight" for i in range(4)} | {"1.bias", "2.bias"}


def test_a_module_at_several_places_is_one() -> None:
    """The module is wrapped once, under its first name; buffers aren't sharded."""
    model = Repeated()
    assert fsdp_groups(model, list(model.layers)) == ()
    assert fsdp_groups(model, ["layers.2", "layers.1.0"]) == ()
    assert fsdp_groups(Translator().encoder, ["embed"]) == ()


@pytest.fixture(scope="module")
def group() -> Iterator[None]:
    """A group of one process."""
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_gloo_available()):
        pytest.skip("there is no gloo")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=0, world_size=1
    )
    yield
    distributed.destroy_process_group()


def shard(model: Any, names: list[str], together: Any) -> None:
    """Wraps the modules, those of a group by one call, and then the model."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (1,))
    calls = [modules for modules, _ in together]
    in_groups = {name for modules in calls for name in modules}
    calls += [(name,) for name in ["", *names] if name not in in_groups]
    for modules in sorted(calls, key=lambda modules: "" in modules):  # the whole model last
        fully_shard([model.get_submodule(name) for name in modules], mesh=mesh)


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(
    ("make", "names"),
    [
        (Language, ["embed", "block", "head"]),
        (Language, ["embed", "block"]),
        (Translator, ["shared", "encoder", "decoder", "head"]),
        (Translator, ["decoder.embed", "encoder"]),
        (Repeated, ["layers.0", "out"]),
    ],
)
def test_fully_shard_keeps_the_ties(make: Any, names: list[str]) -> None:
    """Wrapped as the groups say, the parameters that were one are one DTensor; so in its state."""
    model = make()
    parameters = tied_parameters(model)
    shard(model, names, fsdp_groups(model, names))
    assert tied_parameters(model) == parameters
    assert tie_changes(model, make()) == tie_changes(model.state_dict(), make()) == ""
    assert type(next(model.parameters())).__name__ == "DTensor"


def tied_parameters(model: Any) -> Any:
    """The groups of names that are one object."""
    found: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        found.setdefault(id(parameter), []).append(name)
    return {tuple(names) for names in found.values() if len(names) > 1}


@pytest.mark.usefixtures("group")
def test_fully_shard_one_by_one_cuts_them() -> None:
    """Without the groups the tie is cut, which `tie_changes` tells."""
    model = Language()
    before = ties(model)
    shard(model, ["embed", "block", "head"], ())
    assert tied_parameters(model) == set()
    assert tie_changes(before, model).startswith("head.weight was embed.weight, and is now")


@pytest.mark.usefixtures("group")
def test_a_step_of_a_sharded_model() -> None:
    """Both uses of the shared parameter give their part of its gradient, as without FSDP."""
    torch.manual_seed(0)
    model, plain = Language(), Language()
    plain.load_state_dict(model.state_dict())
    shard(model, ["embed", "head"], fsdp_groups(model, ["embed", "head"]))
    tokens = torch.tensor([[1, 2, 3]])
    for each in (model, plain):
        each(tokens).sum().backward()
        torch.optim.SGD(each.parameters(), lr=0.5).step()
    assert model.head.weight is model.embed.weight
    assert torch.allclose(model.embed.weight.full_tensor(), plain.embed.weight)


@pytest.mark.usefixtures("group")
def test_sharded_parameters_are_tied_again() -> None:
    """`keeping_ties` takes DTensors, too."""
    with torch.device("meta"):
        model = Language()
    shard(model, ["embed", "head"], fsdp_groups(model, ["embed", "head"]))
    with keeping_ties(model):
        model.to_empty(device="cpu")
    assert ties(model) == LANGUAGE
    assert model.head.weight is model.embed.weight
