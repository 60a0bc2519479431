# SPDX-License-Identifier: Apache-2.0
"""The doctor: is a model whole? Its layers, quantized weights, shards, and its directory."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("safetensors")
from model_files import found, numbers, shard, write_file, write_gguf, write_shards
from safetensors.numpy import save_file

from pydag.doctor.repair import write_once
from pydag.files import check, save

BLOCK = ("attn.q.weight", "attn.k.weight", "attn.v.weight", "mlp.weight")


def rows(path: str, names: Iterable[str], count: Iterable[int], *shape: int) -> dict[str, Any]:
    """The arrays of a row of layers, all of one shape."""
    return {f"{path}{i}.{name}": numbers(*(shape or (2, 2))) for i in count for name in names}


def conv(path: str, norm: str = "norm") -> dict[str, Any]:
    """A convolution with its normalization."""
    of_norm = ("weight", "bias", "running_mean", "running_var")
    return {f"{path}.conv.weight": numbers(2, 2)} | {
        f"{path}.{norm}.{name}": numbers(2) for name in of_norm
    }


def errors(folder: Path, arrays: Any) -> list[str]:
    return [f.text for f in check(write_file(folder, arrays)).at("error")]


TEN = rows("model.layers.", BLOCK, range(10))


def without(*beginnings: str) -> dict[str, Any]:
    return {name: array for name, array in TEN.items() if not name.startswith(beginnings)}


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        (
            without("model.layers.4."),
            "model.layers.4 is missing between model.layers.3 and model.layers.5",
        ),
        (
            without("model.layers.4.", "model.layers.5.", "model.layers.6."),
            "model.layers.4 to model.layers.6 are missing between model.layers.3 and "
            "model.layers.7",
        ),
        (rows("", BLOCK, (0, 2, 3)), "1 is missing between 0 and 2"),
        (rows("h.", BLOCK[:3], (0, 2)), "h.1 is missing between h.0 and h.2"),
        (
            without("model.layers.4.mlp"),
            "model.layers.4.mlp.weight is missing: the 9 others of model.layers.* have it",
        ),
        (
            without("model.layers.8.attn.k", "model.layers.8.attn.v"),
            "model.layers.8.attn.k.weight, model.layers.8.attn.v.weight are missing: "
            "the 9 others of model.layers.* have them",
        ),
        (
            rows("a.", BLOCK, (0, 2)) | rows("a.", BLOCK[1:], (1,)),
            "a.1.attn.q.weight is missing: the 2 others of a.* have it",
        ),
    ],
)
def test_layers_that_are_not_whole(tmp_path: Path, arrays: Any, text: str) -> None:
    """A missing layer, and an array that one layer lacks, are errors with the names around them."""
    assert errors(tmp_path, arrays) == [text]


def test_experts_that_are_not_whole(tmp_path: Path) -> None:
    """A missing expert is one error, of its row or of the row of its layer."""
    experts = {
        f"layers.{i}.experts.{j}.{name}": numbers(2, 2)
        for i in range(4)
        for j in range(4)
        for name in ("w1", "w2", "w3")
    }
    for expert, text in {
        "2.experts.1": "layers.2.experts.1 is missing between layers.2.experts.0 and layers.2.expe",
        "2.experts.3": "layers.2.experts.3.w1, layers.2.experts.3.w2, layers.2.experts.3.w3 are mi",
        "2.experts.1.w2": "layers.2.experts.1.w2 is missing: the 3 others of layers.2.experts.* ha",
    }.items():
        left = {n: a for n, a in experts.items() if not n.startswith(f"layers.{expert}")}
        (line,) = errors(tmp_path, left)
        assert line.startswith(text)


def test_many_missing_layers_are_few_lines(tmp_path: Path) -> None:
    """A row with many holes is a few lines, and the last says how many more there are."""
    arrays = rows("h.", BLOCK, [i for i in range(200) if i % 4], 1)
    lines = errors(tmp_path, arrays)
    assert len(lines) == 21
    assert lines[-1].startswith("and 29 more like these: ")
    (line,) = errors(tmp_path, rows("h.", BLOCK, (0, 9000), 1))
    assert line == "h.1 to h.8999 are missing between h.0 and h.9000"


NORMAL: dict[str, dict[str, Any]] = {
    "whole": TEN,
    "a chain with activations between": rows("net.", ("weight", "bias"), (0, 2, 3, 6)),
    "blocks with activations between": rows("net.", BLOCK, (0, 2, 4, 6)),
    "a chain with activations that have weights": {
        **rows("net.", ("weight", "bias"), (0, 2, 4), 3, 3),
        **rows("net.", ("weight",), (1, 3), 3),
    },
    "a norm in a chain": {
        **rows("net.", ("weight", "bias"), (0, 1, 3, 4), 3, 3),
        "net.2.weight": numbers(3),
    },
    "ModernBERT: the first layer has no norm": {
        **rows("model.layers.", ("attn_norm.weight", *BLOCK), range(1, 6)),
        **rows("model.layers.", BLOCK, (0,)),
    },
    "T5: the first layer has positions": {
        **rows("encoder.block.", BLOCK, range(6)),
        "encoder.block.0.layer.0.relative_attention_bias.weight": numbers(4, 4),
    },
    "DeepSeek: the first layer is dense": {
        **rows("model.layers.", BLOCK, range(5)),
        **{
            f"model.layers.{i}.mlp.experts.{j}.up.weight": numbers(2, 2)
            for i in range(1, 5)
            for j in range(4)
        },
    },
    "experts in every second layer": {
        **rows("layers.", BLOCK, range(6)),
        **rows("layers.", ("moe.w1", "moe.w2"), (1, 3, 5)),
        **rows("layers.", ("dense.w",), (0, 2, 4)),
    },
    "Jamba: few layers of attention": {
        **rows("layers.", ("mamba.a", "mamba.b", "mamba.c", "mlp.w"), (0, 1, 2, 4, 5, 6)),
        **rows("layers.", BLOCK, (3, 7)),
    },
    "Zamba: a shared block is stored once": {
        **rows("layers.", ("mamba.a", "mamba.b", "mamba.c"), range(7)),
        **rows("layers.", ("linear.weight", "shared.q", "shared.k"), (2,)),
        **rows("layers.", ("linear.weight",), (5,)),
    },
    "layers of attention to pictures between others": {
        **rows("layers.", BLOCK, (0, 1, 2, 4, 5, 6, 8)),
        **rows("layers.", ("cross_attn.q", "cross_attn.k", "gate"), (3, 7)),
    },
    "Swin: stages of several depths, the last without a step down": {
        **{
            f"layers.{i}.blocks.{j}.{name}": numbers(2 + i, 2)
            for i, depth in enumerate((2, 2, 6, 2))
            for j in range(depth)
            for name in BLOCK
        },
        **rows("layers.", ("downsample.weight",), range(3)),
    },
    "ResNet: the first block of a stage has a shortcut": {
        name: array
        for stage in range(4)
        for block in range(3)
        for part in ("one", "two", *(("shortcut",) if block == 0 else ()))
        for name, array in conv(f"stages.{stage}.{block}.{part}").items()
    },
    "three blocks, of which the second makes it smaller": {
        name: array
        for block in range(3)
        for part in ("one", "two", *(("identity",) if block != 1 else ()))
        for name, array in conv(f"stage.{block}.{part}").items()
    },
    "a chain of blocks with pooling between, which grow": {
        name: numbers(*array.shape, 2 + i)
        for i in (0, 1, 3, 4, 6)
        for name, array in conv(f"features.{i}").items()
    },
    "DPT: one size of four is kept": {
        f"layers.{i}.{name}.{part}": numbers(2 + i, 2)
        for i in range(4)
        for name in ("projection", *(("resize",) if i != 2 else ()))
        for part in ("weight", "bias")
    },
    "UNet: the last block of a row makes nothing smaller": {
        **rows("down_blocks.", ("resnets.0.w", "resnets.1.w"), range(4)),
        **rows("down_blocks.", ("attentions.0.w", "attentions.1.w"), range(3)),
        **rows("down_blocks.", ("downsamplers.0.w",), range(3)),
        **rows("up_blocks.", ("resnets.0.w", "resnets.1.w", "resnets.2.w"), range(4)),
        **rows("up_blocks.", ("attentions.0.w",), range(1, 4)),
        **rows("up_blocks.", ("upsamplers.0.w",), range(3)),
    },
    "pruned: two layers have no attention": {
        **rows("layers.", BLOCK, (0, 1, 3, 5, 6)),
        **rows("layers.", ("mlp.weight",), (2, 4)),
    },
    "the state of a training": rows(
        "optimizer.state.", ("step", "exp_avg", "exp_avg_sq"), (0, 1, 3)
    ),
    "an adapter of some layers": rows(
        "layers.", ("q.lora_A.weight", "q.lora_B.weight", "v.lora_A.weight"), (0, 1, 7)
    ),
    "names without layers": {"2024.a": numbers(2), "v1.5.b": numbers(2), "0.1.2.3": numbers(2)},
}


@pytest.mark.parametrize("name", NORMAL)
def test_normal_layers(tmp_path: Path, name: str) -> None:
    """Where layers differ by right, and numbers have holes by right, there is no error."""
    assert errors(tmp_path, NORMAL[name]) == []


def test_layers_that_are_there_elsewhere(tmp_path: Path) -> None:
    """Aliases are there, a shard alone has no whole row, and what is reported is so once."""
    k = "model.layers.4.attn.k.weight"
    path = write_file(tmp_path, without(k), metadata={k: "model.layers.3.attn.k.weight"})
    assert check(path).at("error") == ()
    folder = tmp_path / "shards"
    write_shards(folder, without("model.layers.4."), {"norm.weight": numbers(2)})
    assert [text[:29] for _, text in found(folder)] == ["model.layers.4 is missing bet"]
    assert found(folder / shard(1)) == []
    write_shards(folder, without(k), {"norm.weight": numbers(2)}, index={k: shard(1)})
    assert found(folder) == [("error", f"the index names {k} in {shard(1)}, and it isn't there")]


def test_layers_of_a_tree(tmp_path: Path) -> None:
    """In what pydag saved a list may have holes, and one block at several places."""
    blocks: list[Any] = [{name: numbers(2, 2) for name in BLOCK} for _ in range(5)]
    blocks[1], blocks[3] = None, blocks[2]
    save(tmp_path / "tree.safetensors", {"layers": blocks})
    assert check(tmp_path / "tree.safetensors").at("error") == ()


def test_layers_of_other_formats(tmp_path: Path) -> None:
    """A GGUF file has rows of layers, too."""
    path = tmp_path / "m.gguf"
    write_gguf(path, rows("blk.", ("q.weight", "k.weight", "v.weight"), (0, 1, 3, 4)))
    assert found(path) == [("error", "blk.2 is missing between blk.1 and blk.3")]


def packed(*shape: int, dtype: Any = np.uint8) -> Any:
    return np.ones(shape or (4, 4), dtype)


FORMATS: dict[str, dict[str, Any]] = {
    "GPTQ": {
        ".qweight": packed(dtype=np.int32),
        ".qzeros": packed(dtype=np.int32),
        ".scales": numbers(4),
        ".g_idx": packed(4, dtype=np.int32),
    },
    "AWQ": {".qweight": packed(dtype=np.int32), ".qzeros": packed(4), ".scales": numbers(4)},
    "bitsandbytes": {
        ".weight": packed(8, 1),
        ".weight.absmax": numbers(4),
        ".weight.quant_map": numbers(16),
        ".weight.quant_state.bitsandbytes__nf4": packed(90),
    },
    "bitsandbytes, 8 bits": {".weight": packed(dtype=np.int8), ".SCB": numbers(4)},
    "compressed-tensors": {
        ".weight_packed": packed(dtype=np.int32),
        ".weight_scale": numbers(4),
        ".weight_shape": packed(2, dtype=np.int64),
    },
    "fp8": {".weight": packed(dtype=np.int8), ".weight_scale_inv": numbers(4)},
    "MXFP4": {"_blocks": packed(), "_scales": packed(4)},
}


def quantized(parts: Any, *without: str) -> dict[str, Any]:
    """Four quantized weights, and one that isn't; a weight lacks some parts."""
    names = [f"layers.{i}.mlp.{name}" for i in range(2) for name in ("up", "down")]
    arrays = {name + part: array for name in names for part, array in parts.items()}
    arrays["head.weight"] = numbers(4, 4)
    return {name: array for name, array in arrays.items() if name not in without}


@pytest.mark.parametrize("format_", FORMATS)
def test_a_quantized_weight_without_a_part(tmp_path: Path, format_: str) -> None:
    """A part that a quantized weight lacks, and others have, is one error; whole ones are none."""
    parts = FORMATS[format_]
    assert errors(tmp_path, quantized(parts)) == []
    for part in parts:
        gone = f"layers.1.mlp.up{part}"
        (line,) = errors(tmp_path, quantized(parts, gone))
        assert gone.removesuffix(".bitsandbytes__nf4") in line
    two = [f"layers.{i}.mlp.up{list(parts)[1]}" for i in range(2)]
    assert len(errors(tmp_path, quantized(parts, *two))) == 2


def test_weights_of_several_kinds(tmp_path: Path) -> None:
    """Weights that aren't quantized, or in another way, need no parts of others."""
    arrays = quantized(FORMATS["GPTQ"]) | {
        "vision.fc.weight": packed(dtype=np.int8),
        "vision.fc.weight_scale": numbers(4),
        "layers.1.mlp.gate.weight": numbers(4, 4),
        "other.scales": numbers(4),
        "text_blocks": numbers(4),
        "layers.0.mlp.up.bias": numbers(4),
    }
    assert errors(tmp_path, arrays) == []
    mixed = quantized(FORMATS["bitsandbytes"])
    for name in [name for name in mixed if name.startswith("layers.1.mlp.up")]:
        del mixed[name]
    assert errors(tmp_path, mixed | {"layers.1.mlp.up.weight": numbers(4, 4)}) == []


@pytest.mark.parametrize("total", [2, 3])
def test_a_shard_alone(tmp_path: Path, total: int) -> None:
    """A shard without the others is an error, by its directory and by itself."""
    path = tmp_path / shard(1, total)
    save_file({"a": numbers(3)}, path)
    alone = ("error", f"there is 1 of {total} shards: {path.name}")
    assert found(tmp_path) == [("error", f"there is no index of {path.name}"), alone]
    assert found(path) == [alone]
    with pytest.raises(ValueError, match="nothing is written: there is 1 of"):
        write_once(str(tmp_path), str(tmp_path / "out"))
    for i in range(2, total + 1):
        save_file({"b": numbers(3)}, tmp_path / shard(i, total))
    assert found(path) == []
    save_file({"a": numbers(3)}, tmp_path / shard(1, 1))
    assert found(tmp_path / shard(1, 1)) == []


@pytest.mark.parametrize(
    "name",
    [
        "model-mtp-of-00002.safetensors",
        "model-00003-of-00003.safetensors",
        "mtp.safetensors",
        "ema.safetensors",
        "model.ema.safetensors",
        "model.safetensors",
    ],
)
def test_a_file_that_the_index_does_not_name(tmp_path: Path, name: str) -> None:
    """Arrays that the index lacks are an error, other values a doubt, and equal ones nothing."""
    first, second = {"h.0.w": numbers(30)}, {"h.1.w": numbers(30, seed=1)}
    write_shards(tmp_path, first, second)
    save_file(second | {"mtp.fc.weight": numbers(3)}, tmp_path / name)
    assert found(tmp_path) == [
        ("error", f"the index doesn't name {name}, and it has mtp.fc.weight")
    ]
    save_file({"h.1.w": numbers(30, seed=2)}, tmp_path / name)
    text = f"the index doesn't name {name}, which has other values for h.1.w"
    if name == "model.safetensors":
        text = f"{name} is beside the shards of the index, and has h.1.w as well: "
        text += "readers may take it instead of them"
    assert found(tmp_path) == [("doubt", text)]
    assert found(tmp_path, headers=True) == []
    save_file(second, tmp_path / name)
    assert found(tmp_path) == []
    half = {name: array.astype(np.float16) for name, array in second.items()}
    save_file(half, tmp_path / name)
    assert found(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "arrays"),
    [
        ("consolidated.safetensors", {"layers.0.wq.weight": numbers(3)}),
        ("adapter_model.safetensors", {"base_model.h.0.lora_A.weight": numbers(3)}),
        ("lora.safetensors", {"h.0.q.lora_A.weight": numbers(3)}),
        ("optimizer.safetensors", {"state.0.exp_avg": numbers(3)}),
        ("vector.safetensors", {"direction": numbers(3)}),
        ("pytorch_model.bin", {"h.9.w": numbers(3)}),
    ],
)
def test_a_file_that_is_no_part_of_the_model(tmp_path: Path, name: str, arrays: Any) -> None:
    """Another form of a model, an adapter and the state of a training don't belong to an index."""
    write_shards(tmp_path, {"h.0.w": numbers(3)}, {"h.1.w": numbers(4)})
    save_file(arrays, tmp_path / name)
    assert found(tmp_path) == []


def test_shards_that_can_not_be_read(tmp_path: Path) -> None:
    """Pointers of Git LFS in place of files are one line, which says what to do."""
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 123\n"
    said = "it is a Git LFS pointer, and the file itself isn't here: git lfs pull"
    write_shards(tmp_path, {"a": numbers(3)}, {"b": numbers(3)})
    for i in (1, 2):
        (tmp_path / shard(i)).write_text(pointer)
    assert found(tmp_path) == [("error", f"{shard(1)}, {shard(2)} can't be read: {said}")]
    for path in tmp_path.iterdir():
        path.unlink()
    (tmp_path / "model.safetensors").write_text(pointer)
    with pytest.raises(ValueError, match="git lfs pull"):
        check(tmp_path)


def test_what_was_read_is_said(tmp_path: Path) -> None:
    """A report of a directory with several models says which of them was read, and which not."""
    write_file(tmp_path, {"a.b": numbers(3)})
    for name in ("optimizer.pt", "training_args.bin", "rng_state_0.pth", "tokenizer.json"):
        (tmp_path / name).write_bytes(b"x")
    report = check(tmp_path)
    assert (report.read, report.not_read) == (("model.safetensors",), ())
    assert "read:" not in str(report)
    assert "not_read" not in report.to_json()
    for name in ("pytorch_model.bin", "tf_model.h5"):
        (tmp_path / name).write_bytes(b"x")
    report = check(tmp_path)
    line = "  read: model.safetensors; not read: pytorch_model.bin, tf_model.h5"
    assert line in str(report).splitlines()
    assert report.to_json()["not_read"] == ["pytorch_model.bin", "tf_model.h5"]


def write_cache(folder: Path, *revisions: str, main: str | None = None) -> Path:
    """A directory of a model in a hub cache."""
    (folder := folder / "models--org--name").mkdir()
    for revision in revisions:
        snapshot = folder / "snapshots" / revision
        snapshot.mkdir(parents=True)
        write_file(snapshot, {"a.b": numbers(3)})
    for inner in ("blobs", "refs"):
        (folder / inner).mkdir()
    if main is not None:
        (folder / "refs" / "main").write_text(main)
    return folder


def test_a_hub_cache(tmp_path: Path) -> None:
    """The directory of a model in a hub cache is that of its main revision, which is said."""
    folder = write_cache(tmp_path, "abc", "def", main="def")
    report = check(folder)
    assert str(report).startswith(f"{folder}: safetensors, 1 file, revision def\n")
    assert report.to_json()["revision"] == "def"
    assert check(folder / "snapshots" / "abc").revision == "abc"
    assert check(folder / "snapshots" / "abc" / "model.safetensors").revision is None
    (folder / "refs" / "main").write_text("../../..")
    with pytest.raises(ValueError, match=r"no snapshot ../../.. of its refs/main, but of abc, def"):
        check(folder)
    (folder / "refs" / "main").unlink()
    with pytest.raises(ValueError, match="no snapshot"):
        check(folder)
    (other := tmp_path / "other").mkdir()
    assert check(write_cache(other, "abc")).revision == "abc"


def test_a_pipeline(tmp_path: Path) -> None:
    """A pipeline of diffusers has a report for each part, whose findings and figures count."""
    index = {
        "_class_name": "StableDiffusionPipeline",
        "unet": ["diffusers", "UNet2DConditionModel"],
        "vae": ["diffusers", "AutoencoderKL"],
        "tokenizer": ["transformers", "CLIPTokenizer"],
        "safety_checker": [None, None],
    }
    (tmp_path / "model_index.json").write_text(json.dumps(index))
    (tmp_path / "v1.ckpt").write_bytes(b"x")
    for part in ("unet", "vae", "tokenizer"):
        (tmp_path / part).mkdir()
    (tmp_path / "tokenizer" / "vocab.json").write_text("{}")
    whole, cut = numbers(30), tmp_path / "vae" / "diffusion_pytorch_model.safetensors"
    save_file({"a.b": whole}, tmp_path / "unet" / "diffusion_pytorch_model.safetensors")
    save_file({"a.b": whole}, cut)
    save_file({"a.b": whole}, tmp_path / "vae" / "diffusion_pytorch_model.fp16.safetensors")
    report = check(tmp_path)
    assert (report.ok, len(report), report.figures.with_ties) == (True, 0, 60)
    assert [part.path for part in report.parts] == [str(tmp_path / p) for p in ("unet", "vae")]
    assert str(report).startswith(f"{tmp_path}: 2 parts\n  read: unet, vae; not read: v1.ckpt\n\n")
    assert report.to_json() == {"version": 1, "reports": [p.to_json() for p in report.parts]}
    cut.write_bytes(cut.read_bytes()[:-4])
    (finding,) = check(tmp_path).at("error")
    assert finding.text.startswith("vae: ")
    assert "the file is cut short" in finding.text
    cut.parent.rename(tmp_path / "gone")
    text = "model_index.json names vae, of which no weights are there"
    assert found(tmp_path) == [("error", text)]
    with pytest.raises(ValueError, match="give one part: unet"):
        write_once(str(tmp_path), str(tmp_path / "out"))
    with pytest.raises(ValueError, match="give one part: unet"):
        check(tmp_path, against=tmp_path)


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ("{", "model_index.json can't be read: "),
        ("[1]", "model_index.json can't be read: "),
        ('{"vae": ["diffusers", "X"]}', "names no part that has weights there"),
    ],
)
def test_a_pipeline_that_is_none(tmp_path: Path, index: str, said: str) -> None:
    """A pipeline whose index is malformed, or that has no part, is an error with the cause."""
    (tmp_path / "model_index.json").write_text(index)
    with pytest.raises(ValueError, match=re.escape(said)):
        check(tmp_path)


def test_a_directory_of_two_models(tmp_path: Path) -> None:
    """Where no name says which file is meant, an error names all of them."""
    for name in ("one.safetensors", "two.safetensors"):
        save_file({"a": numbers(3)}, tmp_path / name)
    with pytest.raises(
        ValueError, match=r"one\.safetensors, two\.safetensors\. Give the path of one"
    ):
        check(tmp_path)


def test_a_report_is_true(tmp_path: Path) -> None:
    """A report without findings is true, too; a long name is cut where it is shown."""
    report = check(write_file(tmp_path, {"a": numbers(3)}))
    assert (len(report), bool(report)) == (0, True)
    assert repr(report).startswith(f"Report({str(tmp_path / 'model.safetensors')!r}, 0 errors")
    long = "a" * 1000
    ((_, text),) = found(write_file(tmp_path, {long: numbers(40, 16), "b": numbers(40, 16)}))
    assert (long in text, "aaa..." in text) == (False, True)


def test_a_checkpoint_of_lightning(tmp_path: Path) -> None:
    """A file that ends in .ckpt is found in its directory; its format is decided by its content."""
    write_file(tmp_path, {"a.b": numbers(3)}).rename(tmp_path / "last.ckpt")
    assert check(tmp_path).read == ("last.ckpt",)


def test_an_adapter(tmp_path: Path) -> None:
    """An adapter has no head to miss; a copy of its own of a module that may be tied is a doubt."""

    def configure(**more: Any) -> None:
        content = {"base_model_name_or_path": "org/base", **more}
        (tmp_path / "adapter_config.json").write_text(json.dumps(content))

    arrays = {
        f"base_model.model.h.{i}.q.lora_{ab}.weight": numbers(3) for i in (0, 5, 7) for ab in "AB"
    }
    path = tmp_path / "adapter_model.safetensors"
    save_file(arrays | {"base_model.model.wte.weight": numbers(40, 16)}, path)
    configure(modules_to_save=["score"])
    for where in (tmp_path, path):
        report = check(where)
        assert (list(report), report.base) == ([], "org/base")
        assert str(report).startswith(f"{where}: safetensors, 1 file, an adapter of org/base\n")
    for module in ("lm_head", "embed_tokens", "model.embed_tokens", "wte"):
        configure(modules_to_save=[module])
        ((level, text),) = found(tmp_path)
        assert (level, text) == (
            "doubt",
            f"perhaps org/base is tied, and the adapter has {module} of its own, which unties it: "
            "see ensure_weight_tying of peft",
        )
        configure(modules_to_save=[module], ensure_weight_tying=True)
        assert found(tmp_path) == []
    (tmp_path / "adapter_config.json").write_text("[1")
    assert found(tmp_path)[0][1].startswith("adapter_config.json can't be read: ")
