# SPDX-License-Identifier: Apache-2.0
"""Which functions of safetensors keep a tie, and by what in the file.

    python upstream/safetensors_aliases.py

Writes the table of safetensors_aliases.md.
"""

import os
import tempfile
from typing import Any

import page
import safetensors.numpy
import safetensors.torch
import torch
from safetensors import safe_open
from torch import nn


class Tied(nn.Module):
    """An embedding that is the head, too."""

    def __init__(self, is_tied: bool = True) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(100, 8), nn.Linear(8, 100, bias=False)
        if is_tied:
            self.head.weight = self.embed.weight


def described(path: str) -> list[str]:
    """The tensors, the metadata and the size of a file."""
    with safe_open(path, framework="pt") as file:
        metadata = {
            name: text for name, text in (file.metadata() or {}).items() if name != "format"
        }
        names = ", ".join(f"`{name}`" for name in file.offset_keys())
    return [names, f"`{metadata}`" if metadata else "none", f"{os.path.getsize(path):,}"]


def refused(call: Any) -> str:
    """The class of the error of a call."""
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "written"


def main() -> None:
    """Write and read files, and write the tables."""
    model = Tied()
    folder = tempfile.mkdtemp()
    by_model, by_file = f"{folder}/model.safetensors", f"{folder}/file.safetensors"
    safetensors.torch.save_model(model, by_model)
    said = refused(lambda: safetensors.torch.save_file(model.state_dict(), by_file))
    clones = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    safetensors.torch.save_file(clones, by_file)
    writers = [
        ["`save_model(module)`", *described(by_model)],
        ["`save_file(state_dict)`", said, "", ""],
        ["`save_file` of clones", *described(by_file)],
    ]
    readers = []
    for name, path in (("`save_model`", by_model), ("`save_file` of clones", by_file)):
        into = Tied(is_tied=False)
        found = refused(lambda into=into, path=path: safetensors.torch.load_model(into, path))
        equal = torch.equal(into.embed.weight, into.head.weight)
        untied = f"{found.replace('written', 'loaded')}, {'equal' if equal else 'different'} values"
        readers.append(
            [
                name,
                f"{len(safetensors.torch.load_file(path))} tensors",
                f"{len(safetensors.numpy.load_file(path))} arrays",
                untied,
            ]
        )
    text = page.table(["writer", "tensors", "metadata", "bytes"], writers)
    text += "\n" + page.table(
        ["file of", "`torch.load_file`", "`numpy.load_file`", "`load_model`, into an untied model"],
        readers,
    )
    page.write(__file__, text, ["safetensors", "torch"])


if __name__ == "__main__":
    main()
