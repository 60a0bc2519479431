# SPDX-License-Identifier: Apache-2.0
"""The doctor and torch read the same tensors, or one of them refuses the file."""

import collections
import itertools
import pickletools
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

pytest.importorskip("safetensors")
from pydag.arrays.bytes import DTYPES
from pydag.doctor.opening import open_model
from pydag.doctor.torch_file import contents

_NUMBERS = (b"K\x00", b"K\x01", b"K\x03", b"J\xff\xff\xff\xff", b"N", b"\x88", b"\x89")
_VALUES = (b")", b"}", b"]", b"h\x00", b"h\x01", b"h\x05", b"X\x01\x00\x00\x000", b"K\x02K\x03\x86")
_STEPS = (b"(", b"t", b"\x85", b"\x86", b"R", b"b", b"s", b"a", b"0", b"2", b"\x81", b"}b", b")b")
_NAMES = (
    *(b"ccollections\nOrderedDict\n", b"ccollections\nCounter\n", b"c__builtin__\nset\n"),
    *(b"ctorch\nFloatStorage\n", b"ctorch\nIntStorage\n", b"ctorch\nint32\n", b"ctorch\nSize\n"),
    *(b"ctorch._utils\n_rebuild_tensor\n", b"ctorch._utils\n_rebuild_parameter\n"),
)


def _trees() -> Iterator[Any]:
    w, net = torch.arange(12.0).reshape(3, 4), nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(net.parameters())
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    noted = w.clone()
    noted.note = 5
    yield collections.OrderedDict(a=w, b=w.t(), c=w[1:, 1:], d=w[:0], n=3)
    yield {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "x": [None, (1, 2)]}
    yield {"p": nn.Parameter(w), "h": w.bfloat16(), "u": torch.ones(4, dtype=torch.uint16)}
    yield {"z": torch.ones(3, dtype=torch.complex64).conj(), "c": collections.Counter("aab"), 1: w}
    yield [noted, {"s": {1}, "d": torch.device("cpu"), "t": torch.float32, "b": b"ab"}]


def _changed(code: bytes, rng: random.Random) -> bytes:
    """A pickle with one to three instructions changed, added, left out or exchanged."""
    places = [place for _, _, place in pickletools.genops(code)] + [len(code)]
    steps = [code[a:b] for a, b in itertools.pairwise(places)]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        i, j = (rng.randrange(1, len(steps) - 1) for _ in range(2))
        new = rng.choice(rng.choice((_NUMBERS, _VALUES, _STEPS, _NAMES)))
        alike = [step for step in steps[1:-1] if step[:1] == steps[i][:1]]
        at = rng.randrange(len(steps[i]))
        byte = bytes([rng.choice((0, 1, 2, 3, 255, rng.randrange(256)))])
        change = rng.randrange(6)
        if change == 0:
            steps[i : i + 1] = []
        elif change == 1:
            steps[i:i] = [new] if rng.random() < 0.5 else steps[j : j + rng.randrange(1, 6)]
        elif change == 2:
            steps[i], steps[j] = steps[j], steps[i]
        else:
            choices = (new, rng.choice(alike), steps[i][:at] + byte + steps[i][at + 1 :])
            steps[i] = choices[change - 3]
    return b"".join(steps)


def _by_doctor(path: Path) -> list[Any] | None:
    """Type, shape and bytes of each tensor; None where there is an error."""
    try:
        model = open_model(str(path))
    except ValueError:
        return None
    try:
        if any(finding.level == "error" for finding in model.findings):
            return None
        if any(container.unwritable for container in model.containers):
            return None
        arrays = model.arrays.values()
        return sorted((a.dtype, a.shape, b"".join(contents(a))) for a in arrays)
    finally:
        model.close()


def _by_torch(tree: Any) -> Iterator[Any]:
    if isinstance(tree, torch.Tensor):
        bits = tree.detach().resolve_conj().contiguous().reshape(-1).view(torch.uint8)
        yield DTYPES[str(tree.dtype)[6:]], tuple(tree.shape), bits.numpy().tobytes()
    for part in tree.values() if isinstance(tree, dict) else ():
        yield from _by_torch(part)
    for part in tree if isinstance(tree, (list, tuple, set)) else ():
        yield from _by_torch(part)


@pytest.mark.parametrize("seed", range(3))
def test_torch_reads_what_was_checked(seed: int, tmp_path: Path) -> None:
    """Of files whose pickles were changed at random, both read equal tensors, or one refuses."""
    rng, path, same = random.Random(seed), tmp_path / "m.pt", 0
    bases = []
    for tree in _trees():
        torch.save(tree, path)
        with zipfile.ZipFile(path) as archive:
            bases.append([(info.filename, archive.read(info)) for info in archive.infolist()])
    for _ in range(250):
        (name, code), *others = rng.choice(bases)
        code = _changed(code, rng)
        with zipfile.ZipFile(path, "w") as archive:
            for record in ((name, code), *others):
                archive.writestr(*record)
        if (checked := _by_doctor(path)) is None:
            continue
        try:
            tree = torch.load(path, weights_only=True)
        except Exception:  # of any kind: the file is malformed
            continue
        assert checked == sorted(_by_torch(tree)), code
        same += 1
    assert same > 20
