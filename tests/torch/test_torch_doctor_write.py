# SPDX-License-Identifier: Apache-2.0
"""`check --write` gives folders that transformers and peft load, with the ties and the values."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
transformers = pytest.importorskip("transformers")
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from pydag.__main__ import main
from pydag.files import check
from pydag.integrations.torch import ties

pytestmark = [pytest.mark.once, pytest.mark.filterwarnings("ignore")]

WIDE = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
WIDE |= {"intermediate_size": 32}
SPLIT = {"vocab_size": 60, "d_model": 16, "pad_token_id": 0, "max_position_embeddings": 32}
SPLIT |= {f"{part}_layers": 1 for part in ("encoder", "decoder")}
SPLIT |= {f"{part}_attention_heads": 2 for part in ("encoder", "decoder")}
SPLIT |= {f"{part}_ffn_dim": 32 for part in ("encoder", "decoder")}
AUDIO = {"max_target_positions": 8, "max_source_positions": 8, "num_mel_bins": 8}
AUDIO |= {"bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "GPT2LMHeadModel": ("GPT2Config", {"vocab_size": 60, "n_embd": 16, "n_layer": 2, "n_head": 2}),
    "LlamaForCausalLM": ("LlamaConfig", WIDE | {"tie_word_embeddings": True}),
    "T5ForConditionalGeneration": (
        "T5Config",
        {"vocab_size": 60, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2},
    ),
    "BartForConditionalGeneration": ("BartConfig", SPLIT),
    "MarianMTModel": ("MarianConfig", SPLIT | {"decoder_start_token_id": 1}),
    "WhisperForConditionalGeneration": ("WhisperConfig", SPLIT | AUDIO),
    "BertForMaskedLM": ("BertConfig", WIDE),
    "DistilBertForMaskedLM": (
        "DistilBertConfig",
        {"vocab_size": 60, "dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 32},
    ),
}


@pytest.fixture(params=[*MODELS])
def model(request: pytest.FixtureRequest) -> Any:
    """A small model of each family."""
    torch.manual_seed(0)
    config, options = MODELS[request.param]
    return getattr(transformers, request.param)(getattr(transformers, config)(**options))


def as_saved(model: Any, folder: Path) -> None:
    model.save_pretrained(folder)


def as_shards(model: Any, folder: Path) -> None:
    model.save_pretrained(folder, max_shard_size="4KB")


def as_torch(model: Any, folder: Path) -> None:
    folder.mkdir()
    model.config.save_pretrained(folder)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")


def as_clones(model: Any, folder: Path) -> None:
    folder.mkdir()
    model.config.save_pretrained(folder)
    state = {name: x.clone().contiguous() for name, x in model.state_dict().items()}
    save_file(state, folder / "x.safetensors")


@pytest.mark.parametrize("save", [as_saved, as_shards, as_torch, as_clones])
def test_transformers_loads_what_is_written(
    model: Any, save: Callable[[Any, Path], None], tmp_path: Path
) -> None:
    """transformers loads the folder that is written: each array, the ties, the other files."""
    source, out = tmp_path / "model", tmp_path / "out"
    model.config.architectures = [type(model).__name__]
    save(model, source)
    (source / "tokenizer.json").write_text("{}")
    assert main(["check", str(source), "--write", str(out), "--quiet"]) == 0
    again, loading = type(model).from_pretrained(out, output_loading_info=True)
    assert not any(loading.values())
    assert ties(again) == ties(model)
    state = again.state_dict()
    for name, array in model.state_dict().items():
        assert torch.equal(array, state[name]), name
    assert (out / "tokenizer.json").read_text() == "{}"
    assert (out / "config.json").read_bytes() == (source / "config.json").read_bytes()
    is_sharded = save is as_shards
    assert (out / "model.safetensors").exists() == (not is_sharded)
    assert (out / "model.safetensors.index.json").exists() == is_sharded
    if not is_sharded:
        with safe_open(out / "model.safetensors", "pt") as file:
            assert file.metadata()["format"] == "pt"


@pytest.mark.parametrize("has_head", [False, True])
@pytest.mark.parametrize("is_safe", [True, False])
def test_peft_loads_what_is_written(is_safe: bool, has_head: bool, tmp_path: Path) -> None:
    """peft loads the adapter that is written, with the values; its config goes with it."""
    peft = pytest.importorskip("peft")

    def base() -> Any:
        torch.manual_seed(0)
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(**MODELS["GPT2LMHeadModel"][1]))

    targets = {"target_modules": ["c_attn"], "modules_to_save": ["lm_head"] if has_head else None}
    lora = peft.LoraConfig(r=2, init_lora_weights=False, **targets)
    adapter = peft.get_peft_model(base(), lora)
    source, out = tmp_path / "adapter", tmp_path / "out"
    adapter.save_pretrained(source)
    if not is_safe:
        state = load_file(safe := source / "adapter_model.safetensors")
        torch.save(state, source / "adapter_model.bin")
        safe.unlink()
    assert main(["check", str(source), "--write", str(out), "--quiet"]) == 0
    assert check(out).ok
    again = peft.PeftModel.from_pretrained(base(), out)
    first, second = map(peft.get_peft_model_state_dict, (adapter, again))
    assert first.keys() == second.keys()
    assert all(torch.equal(array, second[name]) for name, array in first.items())
