# SPDX-License-Identifier: Apache-2.0
"""`keeping_ties`: what a block cuts is tied again at its end, or an error comes."""

import copy
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch_models import LANGUAGE, MODELS, Language, Recurrent, Repeated, Translator, bytes_of, cut

from pydag import SharingError
from pydag.integrations.torch import (
    LostTieWarning,
    keeping_ties,
    module_tree,
    tie_again,
    tie_changes,
    tied_weights_keys,
    ties,
)

models = pytest.mark.parametrize(("make", "tied"), MODELS)


@models
def test_loading_by_assignment(make: Any, tied: Any) -> None:
    """The names of a tie hold one parameter again, with the values that were loaded."""
    model, source = make(), make()
    with keeping_ties(model) as kept:
        assert kept == tied
        cut(model)
        model.load_state_dict({k: v.clone() for k, v in source.state_dict().items()}, assign=True)
        if make is not Repeated:  # there it is modules that are shared
            assert ties(model) == ()
    assert ties(model) == tied
    assert bytes_of(model) == bytes_of(source)
    named = dict(model.named_parameters(remove_duplicate=False))
    for group in tied:
        assert len({id(named[name]) for name in group if name in named}) <= 1


def test_one_memory_is_not_yet_one_parameter() -> None:
    """A tied state dict gives two parameters of one memory, which an optimizer would step twice."""
    model, source = Language(), Language()
    with keeping_ties(model):
        model.load_state_dict(source.state_dict(), assign=True)
        assert ties(model) == LANGUAGE
        assert model.head.weight is not model.embed.weight
    assert model.head.weight is model.embed.weight
    assert len(list(model.parameters())) == 3


def as_module(model: Any) -> Any:
    return model


@pytest.mark.parametrize(
    "form",
    [as_module, ties, module_tree, nn.Module.state_dict, lambda m: json.loads(json.dumps(ties(m)))],
)
@models
def test_a_module_that_is_cut_already(make: Any, tied: Any, form: Any) -> None:
    """Such a module is tied as another one is, whatever is given of that."""
    model = make()
    before = dict(model.named_parameters(remove_duplicate=False))
    firsts = [before[group[0]] for group in tied if group[0] in before]
    tie_again(model, form(make()))
    values = bytes_of(model)
    assert [before[group[0]] for group in tied if group[0] in before] == firsts
    for cut_it in (cut, lambda model: model.load_state_dict(make_values(model), assign=True)):
        cut_it(model)
        tie_again(model, form(make()))
        assert tie_changes(make(), model) == ""
        assert bytes_of(model) == values


def make_values(module: Any) -> dict[str, Any]:
    """Tied as the module is."""
    values: dict[str, Any] = copy.deepcopy(module).state_dict()
    return values


def test_a_wrapped_module_that_is_cut() -> None:
    """Names are compared without the prefix that one side has."""
    for wrap in (nn.DataParallel, torch.compile, lambda m: nn.ModuleDict({"student": m})):
        model = Language()
        cut(model)
        tie_again(wrap(model), LANGUAGE)
        assert model.head.weight is model.embed.weight
        tie_again(model, wrap(Language()))


def test_what_cannot_be_tied_again() -> None:
    """The rules are those of `keeping_ties`: values that differ, names that are gone."""
    model = Language(tied=False)
    kept = bytes_of(model)
    with pytest.raises(SharingError, match=r"embed\.weight and head\.weight were one tensor"):
        tie_again(model, Language())
    with pytest.raises(SharingError, match=r"head\.bias is gone"):
        tie_again(model, [["block.bias", "head.bias"]])
    with pytest.raises(ValueError, match="on_conflict is"):
        tie_again(model, Language(), on_conflict="last")  # type: ignore[arg-type]  # another word
    with pytest.raises(TypeError, match="got an object of <class 'int'>"):
        tie_again(model, 3)
    assert bytes_of(model) == kept
    first = model.embed.weight
    tie_again(model, [["embed.weight", "head.weight"], ["block.bias", "gone"]], on_conflict="first")
    assert model.head.weight is model.embed.weight is first


def test_swapped_arguments() -> None:
    """Nothing is to be tied again, and the module has a tie that `before` hasn't: an error."""
    model, other = Language(), Language()
    cut(other)
    for before in (other, ties(other), other.state_dict(), module_tree(other)):
        with pytest.raises(
            ValueError, match=r"nothing to tie again: .*\n.*tie_again\(module, befo"
        ):
            tie_again(model, before)
    for first in (ties(model), model.state_dict(), tied_weights_keys(model)):
        with pytest.raises(TypeError, match=r"tie_again\(module, before\) takes a torch.*first"):
            tie_again(first, other)
    nothing: list[Any] = [[], (), {}, LANGUAGE, Language()]
    for before in nothing:
        tie_again(model, before)
    tie_again(other, other)
    tie_again(other, tied_weights_keys(model))
    assert other.head.weight is other.embed.weight


def test_a_model_that_is_visibly_cut() -> None:
    """`keeping_ties` warns, and names the cure; it goes on as ever."""
    model = Language()
    model.load_state_dict(Language().state_dict(), assign=True)
    over_one_memory = "embed.weight and head.weight are parameters over one memory"
    with pytest.warns(LostTieWarning, match=over_one_memory) as caught, keeping_ties(model) as kept:
        assert kept == LANGUAGE
    assert "tie_again(model, before)" in str(caught[0].message)
    assert caught[0].filename == __file__
    for keys in ({"head.weight": "embed.weight"}, ["head.weight"]):
        model = Language(tied=False)
        model._tied_weights_keys = keys
        said = r"_tied_weights_keys says that head\.weight is .*: a tensor of its own"
        with pytest.warns(LostTieWarning, match=said), keeping_ties(model):
            pass
        model.config = SimpleNamespace(tie_word_embeddings=False)
        with keeping_ties(model):
            pass
    model = Language()
    model._tied_weights_keys = {"head.weight": "embed.weight", "block.gone": "block.weight"}
    with keeping_ties(model):
        pass


@models
@pytest.mark.parametrize("again", range(3))
def test_to_empty(make: Any, tied: Any, again: int) -> None:
    """What it makes has no values yet, and so no two that differ."""
    [torch.full((7, 4), float(i)) for i in range(20)]  # what the next ones find in memory
    with torch.device("meta"):
        model = make()
    with keeping_ties(model):
        model.to_empty(device="cpu")
    assert ties(model) == tied
    assert not any(tensor.is_meta for tensor in model.state_dict().values())


def test_from_meta_to_values() -> None:
    """Made on `meta`, given memory, loaded: the ways that large models are made."""
    source = Language()
    loads: list[Callable[[Any], Any]] = [
        lambda model: model.load_state_dict(cloned(source), assign=True),
        lambda model: model.to_empty(device="cpu").load_state_dict(cloned(source)),
        # The file has the anchor alone, or the alias alone.
        lambda model: model.load_state_dict(without(source, "head.weight"), False, True),
        lambda model: model.load_state_dict(without(source, "embed.weight"), False, True),
    ]
    for load in loads:
        with torch.device("meta"):
            model = Language()
        with keeping_ties(model):
            load(model)
        assert model.head.weight is model.embed.weight
        assert bytes_of(model) == bytes_of(source)


def cloned(module: Any) -> dict[str, Any]:
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def without(module: Any, name: str) -> dict[str, Any]:
    state = cloned(module)
    del state[name]
    return state


@pytest.mark.parametrize("overwrite", [False, True])
def test_to_empty_of_a_module_with_values(overwrite: bool) -> None:
    """Buffers are cut, and parameters if PyTorch replaces them: they are filled with zeros, too."""
    torch.__future__.set_overwrite_module_params_on_conversion(overwrite)
    try:
        model = Translator()
        [torch.full((7, 4), float(i)) for i in range(20)]  # what the next ones find in memory
        with keeping_ties(model):
            model.to_empty(device="cpu")
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    assert tie_changes(Translator(), model) == ""


@pytest.mark.parametrize("on_meta", [False, True])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_cast_of_the_whole(on_meta: bool, overwrite: bool) -> None:
    """`.to(dtype)` of all parts, with PyTorch's two ways to write the result."""
    with torch.device("meta" if on_meta else "cpu"):
        model = Language()
    torch.__future__.set_overwrite_module_params_on_conversion(overwrite)
    try:
        with keeping_ties(model):
            model.to(torch.bfloat16)
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    assert ties(model) == LANGUAGE
    assert model.head.weight is model.embed.weight
    assert model.head.weight.dtype == torch.bfloat16


def test_a_cast_of_one_end() -> None:
    """The two differ then: an error names both, and nothing is changed."""
    model = Language()
    with (
        pytest.raises(SharingError, match=r"(?s)embed\.weight and head\.weight were one.*bfloat16"),
        keeping_ties(model),
    ):
        model.head = copy.deepcopy(model.head).to(torch.bfloat16)
    assert model.head.weight.dtype == torch.bfloat16
    assert model.embed.weight.dtype == torch.float32


def test_a_deep_copy_of_a_part() -> None:
    """The copy is cut from the rest without a word, and tied again."""
    model = Translator()
    kept = model.shared.weight
    with keeping_ties(model):
        model.decoder = copy.deepcopy(model.decoder)
    assert model.decoder.embed.weight is model.shared.weight is kept
    assert model.decoder.positions is model.encoder.positions


def test_two_that_differ() -> None:
    """An error names both with their shapes, before any tie is set."""
    model = Translator()

    def change() -> None:
        cut(model)
        with torch.no_grad():
            model.head.weight.add_(1)

    with pytest.raises(SharingError) as caught, keeping_ties(model):
        change()
    assert str(caught.value).splitlines() == [
        "shared.weight and head.weight were one tensor, and differ now",
        "  shared.weight: float32[7,4] on cpu",
        "  head.weight: float32[7,4] on cpu",
        '  Nothing was tied again. To take the first: on_conflict="first".',
    ]
    assert ties(model) == ()


def test_the_first_of_two_that_differ() -> None:
    """The anchor's values are taken by `on_conflict="first"`; on `meta` it has none."""
    for on_meta in (False, True):
        model = Language()
        with keeping_ties(model, on_conflict="first"):
            cut(model)
            with torch.no_grad():
                model.head.weight.add_(1)
            wanted = (model.head if on_meta else model.embed).weight
            if on_meta:
                model.embed.to("meta")
        assert model.head.weight is model.embed.weight is wanted
    wrong: Any = "last"
    with pytest.raises(ValueError, match="on_conflict is 'raise' or 'first', and not 'last'"):
        keeping_ties(model, on_conflict=wrong).__enter__()


def test_a_block_that_raises() -> None:
    """Nothing is done then, and its exception passes."""
    model = Language()

    def fail() -> None:
        cut(model)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"), keeping_ties(model):
        fail()
    assert ties(model) == ()


def test_one_end_quantized() -> None:
    """A quantized layer has no such parameter: an error says what stands there now."""
    model = Language()
    with (
        pytest.raises(
            SharingError, match=r"head\.weight is gone: head is of the class torch\..*quantized.*"
        ),
        keeping_ties(model),
    ):
        quantized(model)
    with keeping_ties(model2 := Language(), on_conflict="first"):
        quantized(model2)
    assert ties(model2) == ()


@pytest.mark.filterwarnings("ignore")  # PyTorch moves this to another package
def quantized(model: Any) -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dynamic = torch.ao.nn.quantized.dynamic.Linear
        model.head.qconfig = torch.ao.quantization.default_dynamic_qconfig
        model.head = dynamic.from_float(model.head)


def test_recurrent_layers() -> None:
    """Recurrent layers keep a list of their parameters, which follows."""
    model = Recurrent()
    with keeping_ties(model):
        cut(model)
    assert any(w is model.first.weight_ih_l0 for w in model.second._flat_weights)
    x = torch.ones(2, 1, 4)
    with torch.no_grad():
        before = model(x)
        model.first.weight_ih_l0.zero_()
        assert not torch.equal(before, model(x))


def test_a_part_that_is_still_on_meta() -> None:
    """Both ends on `meta` are tied again there."""
    with torch.device("meta"):
        model = Language()
    with keeping_ties(model):
        model.head = copy.deepcopy(model.head)
        assert ties(model) == ()
    assert ties(model) == LANGUAGE
    assert model.head.weight.is_meta


def test_initialization() -> None:
    """Initialization in place cuts nothing; what was cut already, with two values, is an error."""
    model = Language()
    with keeping_ties(model):
        for part in (model.embed, model.head):
            nn.init.normal_(part.weight)
    assert model.head.weight is model.embed.weight
    with torch.device("meta"):
        model = Language()

    def initialize() -> None:
        model.to_empty(device="cpu")
        for part in (model.embed, model.head):
            nn.init.normal_(part.weight)

    with pytest.raises(SharingError), keeping_ties(model):
        initialize()
