# SPDX-License-Identifier: Apache-2.0
"""`tie_changes`: what was cut and what was made, in words."""

import copy
import json
import pickle
from typing import Any

import pytest
import torch
from torch import nn
from torch_models import LANGUAGE, MODELS, Language, Longer, Translator, cut

import pydag
from pydag.integrations.torch import (
    module_tree,
    tie_again,
    tie_changes,
    tied_weights_keys,
    ties,
)

models = pytest.mark.parametrize(("make", "tied"), MODELS)


@models
def test_the_tie_changes(make: Any, tied: Any) -> None:
    """Two models of one class, whatever is given of each: the answer is empty, and false."""
    with torch.device("meta"):
        other = make()
    model = make()
    trees = [module_tree(model), pydag.dag_map(lambda x: x.detach() + 1, module_tree(model))]
    saved = [tied, ties(model), ties(model.state_dict()), pickle.loads(pickle.dumps(ties(model)))]
    forms = [model, other, model.state_dict(), model.state_dict(keep_vars=True), *trees, *saved]
    forms += [other.state_dict(), module_tree(other)]
    for first in forms:
        for second in forms:
            assert tie_changes(first, second) == ""


def test_a_tie_that_was_cut() -> None:
    """The text names both, and says whether they are still equal, as far as that is known."""
    model = Language()
    saved = json.loads(json.dumps(ties(model)))
    cut(model)
    said = "head.weight was embed.weight, and is now a tensor of its own"
    assert tie_changes(saved, model) == f"{said} (equal)"
    assert tie_changes(Language(), model.state_dict()) == f"{said} (equal)"
    with torch.no_grad():
        model.head.weight[0, 0] += 1
    assert tie_changes(saved, model) == f"{said} (different)"
    assert tie_changes(saved, model.to("meta")) == f"{said} (on meta)"
    assert tie_changes(saved, ()) == said


@pytest.mark.parametrize("value", [float("nan"), 0.0])
def test_equal_is_by_bytes(value: float) -> None:
    """NaN equals NaN; the two zeros differ."""
    model = Language(tied=False)
    for layer in (model.embed, model.head):
        nn.init.constant_(layer.weight, value)
    assert tie_changes(LANGUAGE, model).endswith("(equal)")
    with torch.no_grad():
        model.head.weight.neg_()
    assert tie_changes(LANGUAGE, model).endswith("(different)")


def over_one_memory() -> Any:
    """What a load by assignment of a tied state dict makes."""
    model = Language()
    model.load_state_dict(Language().state_dict(), assign=True)
    return model


def test_two_parameters_over_one_memory() -> None:
    """The two were one parameter: a change wherever it is known what the objects are."""
    model, two = Language(), over_one_memory()
    said = "head.weight and embed.weight were one parameter, and are now two over one memory"
    saved = [ties(model), json.loads(json.dumps(ties(model))), LANGUAGE, list(LANGUAGE)]
    afters = [two, two.state_dict(keep_vars=True), ties(two), copy.deepcopy(ties(two))]
    for before in (model, model.state_dict(keep_vars=True), module_tree(model), *saved):
        for after in afters:
            assert tie_changes(before, after) == said
    back = "head.weight and embed.weight were two parameters over one memory, and are now one"
    for before in afters:
        assert [tie_changes(before, after) for after in (model, LANGUAGE)] == [back, back]
        assert [tie_changes(before, after) for after in afters] == [""] * 4
    # A state dict has new tensors, and says nothing of the parameters.
    for unknown in (two.state_dict(), model.state_dict(), ties(two.state_dict())):
        assert not any(tie_changes(unknown, other) for other in (model, two, LANGUAGE))
        assert not any(tie_changes(other, unknown) for other in (model, two, LANGUAGE))


def test_a_tie_that_was_made() -> None:
    """The text names both."""
    assert tie_changes(Language(tied=False), Language()) == (
        "head.weight and embed.weight were two tensors, and are now one"
    )
    assert (
        tie_changes((), Language())
        == tie_changes(Language(tied=False), LANGUAGE)
        == ("head.weight and embed.weight were two tensors, and are now one")
    )


def test_a_tie_to_something_else() -> None:
    """Parts of a tie that stay together are listed together, with what they are now."""
    first = (("a", "b", "c", "d"), ("e", "f"))
    assert tie_changes(first, (("a", "b"), ("c", "d"), ("e", "f"))).splitlines() == [
        "c was a, and is now a tensor of its own",
        "d was a, and is now c",
    ]
    assert tie_changes(first, (("a", "b", "c"), ("e", "f", "d"))).splitlines() == [
        "d was a, and is now a tensor of its own",
        "e and d were two tensors, and are now one",
    ]
    assert tie_changes((("x", "y"), *first), (("x", "y", "d"), ("a", "b", "c"), ("e", "f"))) == (
        "d was a, and is now x"
    )
    assert tie_changes((("a", "b"), ("c", "d")), (("a", "b", "c", "d"),)) == (
        "c and a were two tensors, and are now one"
    )


def test_names_of_one_side() -> None:
    """Other names than those of ties don't count; where something differs, they are listed once."""
    model = Translator()
    some = model.state_dict()
    del some["head.bias"], some["encoder.layer.bias"]
    assert tie_changes(model, some) == tie_changes(some, model) == ""
    some["decoder.embed.weight"] = some["decoder.embed.weight"].clone()
    assert tie_changes(model, some).splitlines() == [
        "decoder.embed.weight was shared.weight, and is now a tensor of its own (equal)",
        "only before: encoder.layer.bias, head.bias",
    ]
    assert tie_changes(some, model).splitlines() == [
        "decoder.embed.weight and shared.weight were two tensors, and are now one",
        "only after: encoder.layer.bias, head.bias",
    ]


def without_head(model: Any) -> Any:
    del model.head
    return model


def quantized(model: Any) -> Any:
    model.head = nn.Linear(4, 7, bias=False)
    del model.head.weight
    model.head.register_buffer("qweight", torch.zeros(7, 4, dtype=torch.int8))
    return model


def forms_of(model: Any) -> list[Any]:
    """What can be given for a model, with all names."""
    return [model, model.state_dict(), module_tree(model), ties(model), ties(model.state_dict())]


@pytest.mark.parametrize("change", [without_head, quantized])
def test_a_name_of_a_tie_that_is_gone(change: Any) -> None:
    """The name is listed with the one that it was, whatever is given; and back, it is new."""
    changed = change(Language())
    saved = [LANGUAGE, json.loads(json.dumps(LANGUAGE)), tied_weights_keys(Language())]
    for after in forms_of(changed):
        for before in (*forms_of(Language()), *saved):
            assert tie_changes(before, after).splitlines()[0] == (
                "head.weight was embed.weight, and is gone"
            )
        for back in forms_of(Language()):
            assert tie_changes(after, back).splitlines()[0] == (
                "head.weight is new, and is embed.weight"
            )


def test_a_name_of_a_tie_that_is_new() -> None:
    """The name is no tensor that was untied before; where that is unknown, both are said."""
    for after in forms_of(Longer()):
        for before in forms_of(Language()):
            assert tie_changes(before, after) == "draft.weight is new, and is embed.weight"
            assert tie_changes(after, before) == "draft.weight was embed.weight, and is gone"
        for before in (LANGUAGE, tied_weights_keys(Language())):
            assert tie_changes(before, after) == (
                "draft.weight is new, or was a tensor of its own, and is embed.weight"
            )


def test_the_anchor_or_the_whole_tie_is_gone() -> None:
    """What is left takes the anchor's place; a state dict may lack a whole tie, a module not."""
    model, whole = Language(), "head.weight was embed.weight, and is gone"
    del model.embed
    assert tie_changes(Language(), model) == "embed.weight was head.weight, and is gone"
    del model.head
    assert tie_changes(Language(), model) == tie_changes(ties(Language()), ties(model)) == whole
    assert tie_changes(Language(), model.state_dict()) == ""
    model = Translator()
    for part in (model.encoder, model.decoder):
        part.register_buffer("positions", part.positions, persistent=False)
    assert tie_changes(model, model.state_dict()) == tie_changes(model.state_dict(), model) == ""


def test_parametrized_and_wrapped_layers() -> None:
    """Such layers have other names: gone is the old one, and new is the one that has the tie."""
    model = Language()
    nn.utils.parametrize.register_parametrization(model.head, "weight", nn.Identity())
    lines = [
        "head.weight was embed.weight, and is gone",
        "head.parametrizations.weight.original is new, and is embed.weight",
    ]
    assert tie_changes(Language(), model).splitlines() == lines
    model = Language()
    model.head = nn.ModuleDict({"base": model.head, "adapter": nn.Linear(4, 7)})
    wrapped = nn.ModuleDict({"base_model": model})
    lines[1] = "head.base.weight is new, and is embed.weight"
    for before in (Language(), ties(Language())):
        for after in (model, wrapped):
            assert tie_changes(before, after).splitlines()[:2] == lines


def test_the_dict_of_tied_weights_keys() -> None:
    """The dict is taken for either side, chains included; each tie is one parameter."""
    keys, model = tied_weights_keys(Translator()), Language()
    assert tie_changes(keys, Translator()) == tie_changes(Translator(), keys) == ""
    assert ties({"c": "b", "b": "a", "d": "a", "e": "e"}) == (("a", "c", "b", "d"),)
    cut(model)
    assert tie_changes({"head.weight": "embed.weight"}, model) == (
        "head.weight was embed.weight, and is now a tensor of its own (equal)"
    )
    assert tie_changes(tied_weights_keys(model), model) == ""


@pytest.mark.parametrize(
    "empty",
    [{"step": 3}, {"_extra_state": {"version": 3}}, {"state": {0: {"step": 3}}, "groups": []}],
)
def test_what_holds_no_tensor(empty: Any) -> None:
    """A dict without a tensor is an error on either side."""
    for call in (tie_changes, lambda a, b: tie_changes(b, a), lambda a, b: tie_again(b, a)):
        with pytest.raises(TypeError, match="there are no tensors in this dict"):
            call(empty, Language())


@pytest.mark.parametrize(
    "wrap",
    [
        nn.DataParallel,
        torch.compile,
        lambda model: torch.compile(nn.DataParallel(model)),
        lambda model: nn.ModuleDict({"student": model, "other": nn.Linear(2, 2)}),
        torch.optim.swa_utils.AveragedModel,
    ],
    ids=["DataParallel", "compile", "both", "a part", "AveragedModel"],
)
def test_a_prefix_is_seen_through(wrap: Any) -> None:
    """The prefix may be a wrapper's, or any other that one side has."""
    model, cut_model = Language(), Language()
    cut(cut_model)
    said = "head.weight was embed.weight, and is now a tensor of its own (equal)"
    assert tie_changes(model, wrap(Language())) == tie_changes(wrap(Language()), model) == ""
    assert tie_changes(LANGUAGE, wrap(Language())) == ""
    assert tie_changes(model, wrap(cut_model)).splitlines()[0] == said
    assert tie_changes(wrap(model), cut_model).splitlines()[0] == said
