# SPDX-License-Identifier: Apache-2.0
"""`same_ties`: what was cut and what was made, in words."""

import copy
import json
from typing import Any

import pytest
import torch
from torch import nn
from torch_models import LANGUAGE, MODELS, Language, Repeated, Translator, cut

from pydag.integrations.torch import same_ties, ties

models = pytest.mark.parametrize(("make", "tied"), MODELS)


@models
def test_the_same_ties(make: Any, tied: Any) -> None:
    """Two models of one class, whatever is given of each: the answer is empty, and false."""
    with torch.device("meta"):
        other = make()
    forms = [make(), other, make().state_dict(), other.state_dict(), tied]
    for first in forms:
        for second in forms:
            assert same_ties(first, second) == ""


def test_a_tie_that_was_cut() -> None:
    """It names both, and says whether they are still equal, as far as that is known."""
    model = Language()
    saved = json.loads(json.dumps(ties(model)))
    cut(model)
    said = "head.weight was embed.weight, and is now a tensor of its own"
    assert same_ties(saved, model) == f"{said} (equal)"
    assert same_ties(Language(), model.state_dict()) == f"{said} (equal)"
    with torch.no_grad():
        model.head.weight[0, 0] += 1
    assert same_ties(saved, model) == f"{said} (different)"
    assert same_ties(saved, model.to("meta")) == f"{said} (on meta)"
    assert same_ties(saved, ()) == said


@pytest.mark.parametrize("value", [float("nan"), 0.0])
def test_equal_is_by_bytes(value: float) -> None:
    """NaN equals NaN; the two zeros differ."""
    model = Language(tied=False)
    for layer in (model.embed, model.head):
        nn.init.constant_(layer.weight, value)
    assert same_ties(LANGUAGE, model).endswith("(equal)")
    with torch.no_grad():
        model.head.weight.neg_()
    assert same_ties(LANGUAGE, model).endswith("(different)")


def test_another_dtype_is_another_value() -> None:
    """Ones of half precision aren't ones of single precision."""
    model = Language(tied=False)
    for layer in (model.embed, model.head):
        nn.init.ones_(layer.weight)
    model.head.half()
    assert same_ties(LANGUAGE, model).endswith("(different)")


def test_a_tie_that_was_made() -> None:
    """It names both."""
    assert same_ties(Language(tied=False), Language()) == (
        "head.weight and embed.weight were two tensors, and are now one"
    )
    assert (
        same_ties((), Language())
        == same_ties(Language(tied=False), LANGUAGE)
        == ("head.weight and embed.weight were two tensors, and are now one")
    )


def test_a_tie_to_something_else() -> None:
    """Parts of a tie that stay together are listed together, with what they are now."""
    first = (("a", "b", "c", "d"), ("e", "f"))
    assert same_ties(first, (("a", "b"), ("c", "d"), ("e", "f"))).splitlines() == [
        "c was a, and is now a tensor of its own",
        "d was a, and is now c",
    ]
    assert same_ties(first, (("a", "b", "c"), ("e", "f", "d"))).splitlines() == [
        "d was a, and is now a tensor of its own",
        "e and d were two tensors, and are now one",
    ]
    assert same_ties((("x", "y"), *first), (("x", "y", "d"), ("a", "b", "c"), ("e", "f"))) == (
        "d was a, and is now x"
    )
    assert same_ties((("a", "b"), ("c", "d")), (("a", "b", "c", "d"),)) == (
        "c and a were two tensors, and are now one"
    )


def test_names_of_one_side() -> None:
    """They don't count; where something else differs, they are listed once."""
    model = Translator()
    some = model.state_dict()
    del some["head.weight"], some["head.bias"]
    assert same_ties(model, some) == same_ties(some, model) == ""
    some["decoder.embed.weight"] = some["decoder.embed.weight"].clone()
    assert same_ties(model, some).splitlines() == [
        "decoder.embed.weight was shared.weight, and is now a tensor of its own (equal)",
        "only before: head.weight, head.bias",
    ]
    assert same_ties(some, model).splitlines() == [
        "decoder.embed.weight and shared.weight were two tensors, and are now one",
        "only after: head.weight, head.bias",
    ]


def test_the_list_is_short() -> None:
    """Eight lines, and as many names, and how many more there are."""
    before = Repeated()
    after = Repeated()
    for i in (1, 2):
        after.layers[i] = copy.deepcopy(after.layers[i])
    after.register_parameter("extra", nn.Parameter(torch.ones(1)))
    lines = same_ties(before, after).splitlines()
    assert len(lines) == 10
    assert lines[0] == "layers.1.0.weight was layers.0.0.weight, and is now " + (
        "a tensor of its own (equal)"
    )
    assert lines[8:] == ["... and 6 more", "only after: extra"]


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
    """That of a wrapper, and any other that one side has."""
    model, cut_model = Language(), Language()
    cut(cut_model)
    said = "head.weight was embed.weight, and is now a tensor of its own (equal)"
    assert same_ties(model, wrap(Language())) == same_ties(wrap(Language()), model) == ""
    assert same_ties(LANGUAGE, wrap(Language())) == ""
    assert same_ties(model, wrap(cut_model)).splitlines()[0] == said
    assert same_ties(wrap(model), cut_model).splitlines()[0] == said


def test_wrappers_of_inner_modules_are_seen_through() -> None:
    """Where only a block is compiled or checkpointed."""
    wrapper = pytest.importorskip(
        "torch.distributed.algorithms._checkpoint.checkpoint_wrapper"
    ).checkpoint_wrapper
    before, after = Language(), Language()
    after.embed = torch.compile(after.embed)
    after.head = wrapper(after.head)
    assert next(name for name, _ in after.named_parameters()) == "embed._orig_mod.weight"
    assert same_ties(before, after) == same_ties(after, before) == ""
    assert same_ties(before, after.state_dict()) == ""


def test_two_prefixes_that_fit_are_none() -> None:
    """Where it isn't clear which part is meant, nothing is compared."""
    both = nn.ModuleDict({"teacher": Language(), "student": Language(tied=False)})
    assert same_ties(Language(), both) == ""
    assert same_ties(Language(), both["teacher"]) == ""
    assert same_ties(Language(), both["student"]) != ""
