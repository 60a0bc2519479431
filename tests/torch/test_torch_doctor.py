# SPDX-License-Identifier: Apache-2.0
"""The doctor reads what torch itself writes, and writes what torch reads."""

import argparse
import collections
import functools
import json
import os
import pickle
import struct
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

np = pytest.importorskip("numpy")
pytest.importorskip("safetensors")
from safetensors.torch import load_file, load_model
from torch import nn

from pydag.__main__ import main
from pydag.files import check


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(100, 32)
        self.block = nn.Linear(32, 32)
        self.lm_head = nn.Linear(32, 100, bias=False)
        self.lm_head.weight = self.embed_tokens.weight
        for name in ("float8_e4m3fn", "bfloat16", "uint16", "complex64", "bool"):
            self.register_buffer(f"of_{name}", torch.rand(40, 20).mul(9).to(getattr(torch, name)))
        self.register_buffer("scalar", torch.tensor(3))


TIE = "lm_head.weight is {0}embed_tokens.weight, by one storage"


def found(path: Path) -> list[tuple[str, str]]:
    return [(finding.level, finding.text) for finding in check(path)]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_state_dict(protocol: int, tmp_path: Path) -> None:
    """A state dict of any protocol has its ties, whatever types its tensors have."""
    model, path = Model(), tmp_path / "m.pt"
    torch.save(model.state_dict(), path, pickle_protocol=protocol)
    assert found(path) == [("tie", TIE.format(""))]
    report = check(path)
    assert report.figures.with_ties == sum(
        tensor.numel() for name, tensor in model.state_dict().items() if name != "lm_head.weight"
    )


def test_a_checkpoint(tmp_path: Path) -> None:
    """A checkpoint with an optimizer's state and values of all kinds is read to its end."""
    model, path = Model(), tmp_path / "m.pth"
    optimizer = torch.optim.AdamW(model.parameters())
    model.lm_head(model.embed_tokens(torch.arange(5))).sum().backward()
    optimizer.step()
    values = {"lr": 1e-3, "t": (1, None), "s": {1, 2}, "b": b"abc", "c": 1j, "l": [True, "x"]}
    values |= {"d": torch.device("cpu"), "dt": torch.float32, "size": torch.Size([3])}
    whole = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "args": values}
    torch.save(whole, path)
    assert found(path) == [("tie", "model." + TIE.format("model."))]
    assert "optimizer.state.0.exp_avg" in _names(path)


def _names(path: Path) -> list[str]:
    from pydag.doctor.opening import open_model

    model = open_model(str(path))
    model.close()
    return list(model.arrays)


def test_views(tmp_path: Path) -> None:
    """Views of one storage: transposed, parts, disjoint, and one that leaves most of it unused."""
    path, w = tmp_path / "m.pt", torch.randn(64, 32)
    torch.save({"a": w, "t": w.t(), "row": w[3], "c": w[:, :3]}, path)
    assert found(path) == [
        ("tie", "t is a, transposed, by one storage"),
        ("tie", "c and a share a part of one storage"),
        ("tie", "row and a share a part of one storage"),
    ]
    torch.save({"q": w[:32], "k": w[32:]}, path)
    assert found(path) == []
    torch.save(nn.LSTM(32, 32).state_dict(), path)
    assert found(path) == []
    torch.save({"w": torch.arange(100_000.0)[:10]}, path)
    assert found(path) == [("waste", "w uses 40 B of a storage of 400.0 kB, which is stored whole")]


def test_other_layouts(tmp_path: Path) -> None:
    """Sparse, quantized, conjugated tensors and parameters with attributes are read."""
    path, w = tmp_path / "m.pt", nn.Parameter(torch.randn(64, 32))
    w.extra = "x"
    z = torch.randn(20, 20, dtype=torch.complex64)
    sparse = {"s": torch.eye(50).to_sparse(), "m": torch.empty(5, device="meta")}
    torch.save({"w": w, "v": w, "z": z, "conj": z.conj(), **sparse}, path)
    assert found(path) == [
        ("tie", "v is w, by one storage"),
        ("tie", "conj and z share a part of one storage"),
    ]
    assert main(["check", str(path), "--write", str(tmp_path / "out")]) == 2


def test_what_is_named_besides_is_reported(tmp_path: Path) -> None:
    """Modules, NumPy's arrays and other classes are errors, and none of them is made."""
    path = tmp_path / "m.pt"
    torch.save({"args": argparse.Namespace(a=1), "w": torch.randn(20, 20)}, path)
    ((level, text),) = found(path)
    assert (level, text.startswith("the file names argparse.Namespace: ")) == ("error", True)
    torch.save(Model(), path)
    ((level, text),) = found(path)
    assert (level, f"{Model.__module__}.Model" in text) == ("error", True)
    torch.save({"w": torch.randn(20, 20), "rng": np.random.default_rng(0).normal(size=3)}, path)
    ((level, text),) = found(path)
    assert (level, "tensors in ['rng'] (numpy." in text) == ("error", True)


def test_what_training_saves(tmp_path: Path) -> None:
    """Numbers of NumPy, containers of all kinds and empty tensors of a checkpoint are no errors."""
    model, path = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), tmp_path / "m.ckpt"
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    counts = collections.defaultdict(int, a=1), collections.Counter("aab"), collections.deque([1])
    values = {"best": np.float64(0.5), "step": np.int64(3), "counts": counts, "layers": range(3)}
    values |= {"kinds": frozenset({1, (2, "x")}), "rng": torch.get_rng_state(), "part": slice(3)}
    callbacks = {"Checkpoint{'monitor': None}": {"best": torch.tensor(1.0), "kept": {}}}
    empty = {"tail": torch.ones(5)[5:], "none": torch.empty(0, 3), "odd": torch.ones(2, 3)[:, 3:]}
    whole = {"state_dict": model.state_dict(), "optimizer_states": [optimizer.state_dict()]}
    torch.save(whole | {"hyper_parameters": values, "callbacks": callbacks, "e": empty}, path)
    assert found(path) == []
    assert "optimizer_states.0.state.0.momentum_buffer" in _names(path)
    assert {"e.tail", "e.none", "e.odd"} < set(_names(path))
    for tensor in (torch.zeros(4, dtype=torch.complex128), torch.eye(9).to_sparse()):
        torch.save({"w": W, "t": tensor}, path)
        assert check(path).ok
        assert main(["check", str(path), "--write", str(tmp_path / "out.safetensors")]) == 2


def _with_attribute(thing: Any, tensor: Any) -> Any:
    thing.x = tensor
    return thing


W = torch.arange(400.0).reshape(20, 20)


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (functools.partial(max, W), "['b'] (functools.partial)"),
        (_with_attribute(collections.OrderedDict(), W), "the attributes of a dict"),
        (
            _with_attribute(nn.Parameter(torch.ones(2)), W),
            "torch._utils._rebuild_parameter_with_state",
        ),
        ({torch.float32: W}, "['b'][torch.float32] (under a key that is an object)"),
        (nn.Linear(3, 3), "['b'] (torch.nn.modules.linear.Linear)"),
        (torch.optim.swa_utils.AveragedModel(nn.Linear(3, 3)), ".AveragedModel)"),
        (torch.optim.SGD([nn.Parameter(W)]), "['b'] (torch.optim.sgd.SGD)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_tensor_is_left_out(thing: Any, said: str, tmp_path: Path, capsys: Any) -> None:
    """Where an object that isn't rebuilt holds a tensor, it is named, and nothing is written."""
    path, out = tmp_path / "m.pt", tmp_path / "out.safetensors"
    torch.save({"a": W, "b": thing}, path)
    assert main(["check", str(path), "--write", str(out)]) == 2
    printed = capsys.readouterr()
    assert f"{said} are neither checked nor written" in printed.out
    assert f"{said} are neither checked nor written" in printed.err
    assert not out.exists()


class Evil:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.mark),)


@pytest.mark.parametrize(
    "name",
    ["data.pkl", "DATA.PKL", "m/data.pkl", "M/data.pkl", "x/data.pkl", "m/./data.pkl"],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_what_torch_runs_is_never_fine(name: str, is_first: bool, tmp_path: Path) -> None:
    """Another record beside the pickle that torch might take is an error, whichever it takes."""
    good, path = tmp_path / "m.pt", tmp_path / "evil.pt"
    torch.save({"w": W}, good)
    torch.save(Evil(tmp_path / "ran"), path)
    with zipfile.ZipFile(path) as archive:
        evil = archive.read("evil/data.pkl")
    with zipfile.ZipFile(good) as archive:
        records = [(info.filename, archive.read(info)) for info in archive.infolist()]
    records.insert(0 if is_first else len(records), (name, evil))
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
        warnings.simplefilter("ignore")  # of a name that stands twice
        for record in records:
            archive.writestr(*record)
    with pytest.raises(
        ValueError, match=r"two records of one name|isn't in the folder|differently"
    ):
        check(path)
    path.write_bytes(pickle.dumps(Evil(tmp_path / "ran")) + good.read_bytes())
    with pytest.raises(ValueError, match="with something before it"):
        check(path)
    assert not (tmp_path / "ran").exists()


def test_old_files_and_programs_are_refused(tmp_path: Path) -> None:
    """Files from before torch 1.6 and TorchScript aren't read."""
    path = tmp_path / "m.pt"
    torch.save(Model().state_dict(), path, _use_new_zipfile_serialization=False)
    with pytest.raises(ValueError, match="that isn't a format that can be read safely"):
        check(path)
    with pytest.warns((DeprecationWarning, FutureWarning), match=r"torch\.jit"):
        torch.jit.save(torch.jit.script(nn.Linear(3, 3)), str(path))
    with pytest.raises(ValueError, match="it is a TorchScript program"):
        check(path)


def test_torch_loads_what_is_written(tmp_path: Path) -> None:
    """What `--write` makes of a state dict, torch's readers load into the module, tied."""
    model, path, out = Model(), tmp_path / "m.pt", tmp_path / "m.safetensors"
    torch.save(model.state_dict(), path)
    assert main(["check", str(path), "--write", str(out)]) == 0
    other = Model()
    missing, unexpected = load_model(other, out)
    assert not missing
    assert not unexpected
    assert other.lm_head.weight is other.embed_tokens.weight
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor.reshape(-1).view(torch.uint8), _bytes(other, name))
    z = torch.randn(9, 9, dtype=torch.complex64)
    x = torch.randn(9, 9)
    views = {"z": z.conj(), "n": z.clone().conj().imag, "t": x.t(), "e": x[:1].expand(4, 9)}
    torch.save(views, path)
    out = tmp_path / "views.safetensors"
    assert main(["check", str(path), "--write", str(out)]) == 0
    written = load_file(out)
    for name, tensor in views.items():
        assert torch.equal(written[name], tensor), name


def _bytes(module: Any, name: str) -> Any:
    return module.state_dict()[name].reshape(-1).view(torch.uint8)


def test_shards_with_an_index(tmp_path: Path) -> None:
    """A directory of torch's shards is read by its index, and written as safetensors files."""
    folder, w = tmp_path / "m", torch.randn(64, 32)
    folder.mkdir()
    shards = {"model.embed_tokens.weight": w}, {"lm_head.weight": w.clone(), "x": w + 1}
    files: dict[str, str] = {}
    for i, shard in enumerate(shards, 1):
        name = f"pytorch_model-0000{i}-of-00002.bin"
        torch.save(shard, folder / name)
        files |= dict.fromkeys(shard, name)
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": files}))
    config = {"architectures": ["LlamaForCausalLM"], "tie_word_embeddings": True}
    (folder / "config.json").write_text(json.dumps(config))
    ((level, text),) = found(folder)
    assert (level, "both stored, and equal" in text) == ("waste", True)
    assert main(["check", str(folder), "--write", str(tmp_path / "out")]) == 0
    assert [level for level, _ in found(tmp_path / "out")] == ["tie"]


@pytest.mark.parametrize(
    "family",
    [
        *("bert", "modernbert", "t5", "bart", "deepseek_v3", "jamba", "qwen3_next", "mllama"),
        *("swin", "resnet", "convnext", "dpt", "textnet", "mobilenet_v2", "whisper", "clip"),
    ],
)
def test_the_layers_of_real_models(tmp_path: Path, family: str) -> None:
    """The layers of a model of transformers are whole, whatever the kinds of its layers."""
    transformers = pytest.importorskip("transformers")
    config = transformers.AutoConfig.for_model(family)
    with torch.device("meta"):
        module = transformers.AutoModel.from_config(config)
    header, end = {}, 0
    for name, tensor in module.state_dict().items():
        begin, end = end, end + 2 * tensor.numel()
        shape = list(tensor.shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    (path := tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)
    os.truncate(path, 8 + len(text) + end)  # its arrays take no space
    assert check(path, headers=True).at("error", "doubt") == ()
