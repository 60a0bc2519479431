# SPDX-License-Identifier: Apache-2.0
"""`module_average`: each parameter is moved once, in place, or none is."""

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch_models import MODELS, Language, Repeated, Translator, bytes_of

from pydag import SharingError
from pydag.integrations.torch import keeping_ties, module_average, ties

models = pytest.mark.parametrize(("make", "tied"), MODELS)


@models
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_each_parameter_is_moved_once(make: Any, tied: Any, dtype: Any) -> None:
    """The result is that of `lerp_` for each distinct parameter; objects and ties stay."""
    average, model = make(), make().to(dtype)
    with keeping_ties(average):
        average.to(dtype)
    expected = copy.deepcopy(average)
    with torch.no_grad():
        for p, q in zip(expected.parameters(), model.parameters(), strict=True):
            p.lerp_(q, 0.3)
    kept = {name: id(tensor) for name, tensor in average.state_dict(keep_vars=True).items()}
    module_average(average, model, 0.3)
    assert bytes_of(average) == bytes_of(expected)
    assert {n: id(t) for n, t in average.state_dict(keep_vars=True).items()} == kept
    assert ties(average) == tied


def test_two_parameters_over_one_memory() -> None:
    """The memory is moved once."""
    average, model = Language(), Language()
    average.load_state_dict(copy.deepcopy(average).state_dict(), assign=True)
    assert average.head.weight is not average.embed.weight
    wanted = torch.lerp(average.embed.weight, model.embed.weight, 0.5)
    module_average(average, model, 0.5)
    assert torch.equal(average.head.weight, wanted)


def test_buffers_stay() -> None:
    """Running statistics and counters keep their values."""
    average, model = Repeated(), Repeated()
    model.layers[0][1].running_mean += 1
    before = {name: buffer.clone() for name, buffer in average.named_buffers()}
    module_average(average, model, 0.5)
    assert all(torch.equal(buffer, before[name]) for name, buffer in average.named_buffers())


@pytest.mark.parametrize("wrap", [torch.compile, nn.DataParallel])
def test_a_wrapped_model(wrap: Any) -> None:
    """The prefix of a wrapper is ignored, on either side."""
    average, model = Language(), Language()
    wanted = torch.lerp(average.embed.weight, model.embed.weight, 0.5)
    module_average(average, wrap(model), 0.5)
    assert torch.equal(average.embed.weight, wanted)
    module_average(wrap(average), model, 1.0)
    assert torch.equal(average.embed.weight, model.embed.weight)


def test_a_model_that_shares_with_its_average() -> None:
    """A parameter of both modules, under two names, is no tie within one of them."""
    first = nn.ModuleDict({"a": nn.Linear(2, 2, bias=False), "b": nn.Linear(2, 2, bias=False)})
    second = nn.ModuleDict({"a": nn.Linear(2, 2, bias=False), "b": first["a"]})
    wanted = torch.lerp(first["a"].weight, second["a"].weight, 0.5)
    module_average(first, second, 0.5)
    assert torch.equal(first["a"].weight, wanted)


@pytest.mark.parametrize("which", [0, 1])
def test_a_tie_of_one_side_alone(which: int) -> None:
    """An error names both names and the cure, and nothing changes."""
    pair = [Language(tied=which == 0), Language(tied=which == 1)]
    before = bytes_of(pair[0])
    with pytest.raises(SharingError) as caught:
        module_average(pair[0], pair[1], 0.5)
    where, cure = [("average", "other, module"), ("model", "module, other")][which]
    assert str(caught.value).splitlines() == [
        f"embed.weight and head.weight are one parameter of the {where} alone",
        f"  Tie them in the other, too: tie_again({cure}).",
    ]
    assert bytes_of(pair[0]) == before


def changed(change: Any) -> Any:
    model = Translator()
    change(model)
    return model


def set_bias(model: Any, bias: Any) -> None:
    model.head.bias = nn.Parameter(bias, requires_grad=False)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            lambda m: set_bias(m, torch.ones(8)),
            ValueError,
            r"^head\.bias is float32\[7\], and float32\[8\] in the model$",
        ),
        (
            lambda m: set_bias(m, torch.ones(7).half()),
            ValueError,
            r"^head\.bias is float32\[7\], and float16\[7\] in the model; convert one of the two$",
        ),
        (
            lambda m: set_bias(m, torch.ones(7, device="meta")),
            ValueError,
            r"^head\.bias of the model has no values",
        ),
        (lambda m: setattr(m.head, "bias", None), ValueError, r"only one .* has head\.bias$"),
        (
            lambda m: m.head.register_parameter("scale", nn.Parameter(torch.ones(1))),
            ValueError,
            r"only one .* has head\.scale$",
        ),
    ],
)
def test_all_or_nothing(change: Any, error: Any, message: str) -> None:
    """A model that doesn't fit is an error that names the place, and nothing is written."""
    average, model = Translator(), changed(change)
    before = bytes_of(average)
    with pytest.raises(error, match=message):
        module_average(average, model, 0.5)
    assert bytes_of(average) == before


@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn])
def test_what_has_no_average(dtype: Any) -> None:
    """Parameters of integers or of 8-bit floats are an error with their name."""
    pair = [changed(lambda m: set_bias(m, torch.ones(7).to(dtype))) for _ in range(2)]
    with pytest.raises(ValueError, match=r"^head\.bias is .*\[7\], which has no average"):
        module_average(pair[0], pair[1], 0.5)


def test_what_is_no_module() -> None:
    """A state dict is no module, on either side."""
    model = Language()
    for first, second in ((model, model.state_dict()), (model.state_dict(), model)):
        with pytest.raises(TypeError, match=r"module_average takes a torch\.nn\.Module"):
            module_average(first, second, 0.5)
