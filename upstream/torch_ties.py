# SPDX-License-Identifier: Apache-2.0
"""Which kinds of ties survive which operations of PyTorch.

    python upstream/torch_ties.py

Writes the table of torch_ties.md. A tie is kept if a change of one name shows at the other.
"""

import copy
import io
from collections.abc import Callable
from typing import Any

import page
import torch
from torch import nn


class Pair(nn.Module):
    """Two layers, which `tie` ties."""

    def __init__(self, tie: Callable[[Any], None]) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)
        tie(self)


def parameter(pair: Any) -> None:
    """One parameter in two modules."""
    pair.two.weight = pair.one.weight


def module(pair: Any) -> None:
    """One module under two names."""
    pair.two = pair.one


def memory(pair: Any) -> None:
    """Two parameters of one memory."""
    pair.two.weight = nn.Parameter(pair.one.weight.data)


def transposed(pair: Any) -> None:
    """A parameter that is a transposed view of another one."""
    pair.two.weight = nn.Parameter(pair.one.weight.data.t())


def part(pair: Any) -> None:
    """A parameter that is a part of another one."""
    pair.one.weight = nn.Parameter(torch.zeros(8, 4))
    pair.two.weight = nn.Parameter(pair.one.weight.data[:4])


KINDS = {
    "one parameter": parameter,
    "one module": module,
    "two parameters of one memory": memory,
    "a transposed view": transposed,
    "a slice": part,
}


def cloned(pair: Any) -> dict[str, Any]:
    """A state dict as a file gives it."""
    return {name: tensor.clone() for name, tensor in pair.state_dict().items()}


def through_memory(thing: Any) -> Any:
    """What `torch.save` writes and `torch.load` reads."""
    file = io.BytesIO()
    torch.save(thing, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def loaded(pair: Any, state: Any, **options: Any) -> Any:
    """The module, after `load_state_dict`."""
    pair.load_state_dict(state, **options)
    return pair


def swapped(pair: Any) -> Any:
    """The module in float64, converted by swapping tensors."""
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        return pair.double()
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "`copy.deepcopy`": copy.deepcopy,
    "`double()`": lambda pair: pair.double(),
    "`double()`, swapping": swapped,
    "`to_empty`": lambda pair: pair.to("meta").to_empty(device="cpu"),
    "`load_state_dict`": lambda pair: loaded(pair, cloned(pair)),
    "... of a file, `assign=True`": lambda pair: loaded(pair, cloned(pair), assign=True),
    "`torch.save(module)`": through_memory,
    "`torch.save(state_dict)`, `assign=True`": lambda pair: loaded(
        pair, through_memory(pair.state_dict()), assign=True
    ),
}


def outcome(kind: str, operation: str) -> str:
    """What becomes of a tie."""
    try:
        after = OPERATIONS[operation](Pair(KINDS[kind]))
    except Exception as error:
        return f"{type(error).__name__}"
    with torch.no_grad():
        after.one.weight.fill_(3.0)
        after.two.weight.fill_(5.0)
    is_kept = bool((after.one.weight == 5.0).any())
    if is_kept and kind in ("one parameter", "one module"):
        is_kept = after.one.weight is after.two.weight
        return "kept" if is_kept else "two parameters"
    return "kept" if is_kept else "**cut**"


def main() -> None:
    """Try each, and write the table."""
    rows = [[name, *(outcome(kind, name) for kind in KINDS)] for name in OPERATIONS]
    page.write(__file__, page.table(["", *KINDS], rows), ["torch"])


if __name__ == "__main__":
    main()
