# SPDX-License-Identifier: Apache-2.0
"""`tied_weights_keys` and `check_tied_weights_keys`: what transformers declares of ties."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch_models import Language, Repeated, Translator

from pydag.integrations.torch import check_tied_weights_keys, tied_weights_keys


def test_each_alias_by_its_anchor() -> None:
    """Aliases are named as transformers 5 has them, also of a model on `meta`."""
    with torch.device("meta"):
        model = Translator()
    assert tied_weights_keys(model) == {
        "encoder.embed.weight": "shared.weight",
        "decoder.embed.weight": "shared.weight",
        "head.weight": "shared.weight",
        "decoder.positions": "encoder.positions",
    }
    assert tied_weights_keys(Language(tied=False)) == {}


def test_a_shared_module() -> None:
    """Each of its parameters and buffers is named."""
    keys = tied_weights_keys(Repeated())
    assert len(keys) == 14
    assert keys["layers.2.1.running_mean"] == "layers.0.1.running_mean"


@pytest.mark.parametrize("make", [Language, Translator, Repeated])
def test_what_is_made_is_right(make: Any) -> None:
    """A model with the keys that `tied_weights_keys` gives differs nowhere."""
    model = make()
    assert check_tied_weights_keys(model) != ""
    model._tied_weights_keys = tied_weights_keys(model)
    assert check_tied_weights_keys(model) == ""


def test_modules_and_patterns() -> None:
    """Keys may name modules, or be patterns of names."""
    model = Repeated()
    model._tied_weights_keys = {r"layers\.[12]": "layers.0"}
    assert check_tied_weights_keys(model) == ""
    model._tied_weights_keys = {"layers.1": "layers.0", "layers.2": "layers.1"}
    assert check_tied_weights_keys(model) == ""
    model._tied_weights_keys = {"layers.1": "layers.0"}
    assert check_tied_weights_keys(model).splitlines()[0] == (
        "layers.2.0.weight is layers.0.0.weight, and _tied_weights_keys doesn't say so"
    )
    model._tied_weights_keys = {"layers.1": "layers.0", "layers.2": "out"}
    assert "layers.2 is out, and these are 7 and 2 tensors" in check_tied_weights_keys(model)


def test_a_key_without_a_tie() -> None:
    """The report lists both, and how they compare."""
    model = Language(tied=False)
    model._tied_weights_keys = {"head.weight": "embed.weight", "gone.weight": "embed.weight"}
    said = "_tied_weights_keys says that head.weight is embed.weight: a tensor of its own"
    gone = "_tied_weights_keys has gone.weight, which is no parameter or buffer"
    assert check_tied_weights_keys(model).splitlines() == [f"{said} (different)", gone]
    model.head.weight = nn.Parameter(model.embed.weight.detach().clone())
    assert check_tied_weights_keys(model).splitlines() == [f"{said} (equal)", gone]
    assert check_tied_weights_keys(model.to("meta")).splitlines() == [f"{said} (on meta)", gone]


def test_a_tie_without_a_key() -> None:
    """The report says what is tied."""
    model = Translator()
    said = "{} is {}, and _tied_weights_keys doesn't say so"
    assert check_tied_weights_keys(model).splitlines() == [
        said.format("encoder.embed.weight", "shared.weight"),
        said.format("decoder.embed.weight", "shared.weight"),
        said.format("head.weight", "shared.weight"),
        said.format("decoder.positions", "encoder.positions"),
    ]
    model._tied_weights_keys = {
        "decoder.positions": "encoder.positions",
        "head.weight": "decoder.embed.weight",
        "encoder.embed.weight": "shared.weight",
    }
    assert check_tied_weights_keys(model) == said.format("decoder.embed.weight", "shared.weight")


def test_a_config_that_says_untied() -> None:
    """The model's keys don't count then, and a tie is one too many."""
    for tied, said in (
        (False, ""),
        (True, "head.weight is embed.weight, and config.tie_word_embeddings is false"),
    ):
        model = Language(tied)
        model._tied_weights_keys = {"head.weight": "embed.weight"}
        model.config = SimpleNamespace(tie_word_embeddings=False)
        assert check_tied_weights_keys(model) == said
        model.config.tie_word_embeddings = True
        assert bool(check_tied_weights_keys(model)) is not tied
