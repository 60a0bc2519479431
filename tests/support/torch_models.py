# SPDX-License-Identifier: Apache-2.0
"""Small models of PyTorch that share in the ways that models do."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class Language(nn.Module):
    """The head is the embedding, as in most language models."""

    def __init__(self, tied: bool = True) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.block = nn.Linear(4, 4)
        self.head = nn.Linear(4, 7, bias=False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, tokens: Any) -> Any:
        return self.head(torch.tanh(self.block(self.embed(tokens))))


class Longer(Language):
    """One more head than the model that it comes from, tied as well."""

    def __init__(self) -> None:
        super().__init__()
        self.draft = nn.Linear(4, 7, bias=False)
        self.draft.weight = self.embed.weight


class Renamed(nn.Module):
    """A wrapper that leaves its own part out of the names, as that of FSDP does."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def named_parameters(self, *args: Any, **kwargs: Any) -> Any:
        """Those of the module in it."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.removeprefix("inner."), parameter


class Translator(nn.Module):
    """One embedding under four names, and one position table that is a buffer of two modules."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Embedding(7, 4)
        self.encoder, self.decoder = nn.Module(), nn.Module()
        for part in (self.encoder, self.decoder):
            part.embed = nn.Embedding(7, 4)
            part.embed.weight = self.shared.weight
            part.layer = nn.Linear(4, 4)
        positions = torch.arange(12.0).reshape(3, 4)
        self.encoder.register_buffer("positions", positions)
        self.decoder.register_buffer("positions", positions)
        self.head = nn.Linear(4, 7)
        self.head.weight = self.shared.weight


class Repeated(nn.Module):
    """One block at three places, with normalization, which has buffers."""

    def __init__(self) -> None:
        super().__init__()
        block = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())
        self.layers = nn.ModuleList([block, block, block])
        self.out = nn.Linear(4, 2)


class Recurrent(nn.Module):
    """Two recurrent layers that share the weights of one direction."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LSTM(4, 4), nn.LSTM(4, 4)
        self.second.weight_ih_l0 = self.first.weight_ih_l0

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x)[0])[0]


LANGUAGE = (("embed.weight", "head.weight"),)
TRANSLATOR = (
    ("shared.weight", "encoder.embed.weight", "decoder.embed.weight", "head.weight"),
    ("encoder.positions", "decoder.positions"),
)
REPEATED = tuple(
    tuple(f"layers.{i}.{name}" for i in range(3))
    for name in (
        *("0.weight", "0.bias", "1.weight", "1.bias"),
        *("1.running_mean", "1.running_var", "1.num_batches_tracked"),
    )
)
RECURRENT = (("first.weight_ih_l0", "second.weight_ih_l0"),)

MODELS: list[tuple[Callable[[], Any], tuple[tuple[str, ...], ...]]] = [
    (Language, LANGUAGE),
    (Translator, TRANSLATOR),
    (Repeated, REPEATED),
    (Recurrent, RECURRENT),
    (lambda: Language(tied=False), ()),
]
"""Each with its ties."""


def cut(module: Any) -> None:
    """Gives each name a tensor of its own, as loading does: equal ones."""
    values = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    module.load_state_dict(values, assign=True)


def bytes_of(module: Any) -> dict[str, bytes]:
    """What is in the tensors of a module."""
    named = module.state_dict()
    return {
        name: tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        for name, tensor in named.items()
    }
