# SPDX-License-Identifier: Apache-2.0
"""The doctor on heads and embeddings: what the config says, and what the file has."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("safetensors")
from model_files import EMBED, HEAD, LM, found, numbers, write_file
from safetensors.numpy import load_file

from pydag.doctor.repair import write_once
from pydag.files import check

E, OTHER = numbers(40, 16), numbers(40, 16, seed=1)
TIED, UNTIED = LM | {"tie_word_embeddings": True}, LM | {"tie_word_embeddings": False}
CLASSIFIER, BOTH = "LlamaForSequenceClassification", "XForConditionalGeneration"
INNER, OUTER = "language_model.model.embed_tokens.weight", "language_model.lm_head.weight"
ENCODER, DECODER = (f"model.{part}.embed_tokens.weight" for part in ("encoder", "decoder"))
QUANTIZED = {
    EMBED: E,
    "lm_head.qweight": np.arange(640, dtype=np.int32).reshape(16, 40),
    "lm_head.scales": np.ones((1, 40), np.float16),
}
CODEC = {f"codec.{i}.lm_head.weight": numbers(24, 16, seed=int(i)) for i in "12"}
SEVERAL = CODEC | {INNER: E, "audio.lm_head.weight": numbers(24, 16), OUTER: E}
DIFFERENT, EQUAL = "both stored and different: ", "both stored, and equal: 2.6 kB twice"
FF_OUT = "model.ff_out.weight"


def config_of(tied: object, **nested: object) -> dict[str, Any]:
    """A config that says this, and what is nested in it another thing."""
    return {"tie_word_embeddings": tied} | {
        name: {"tie_word_embeddings": value} for name, value in nested.items()
    }


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Writes a safetensors file, with a config beside it, and returns its path."""
    return lambda *arguments: write_file(tmp_path, *arguments)


@pytest.mark.parametrize(
    ("arrays", "config", "level", "text"),
    [
        ({EMBED: E}, TIED, "tie", f"{HEAD} is {EMBED}: config.json says tied, and one is stored"),
        ({EMBED: E, HEAD: OTHER}, TIED, "error", f"{DIFFERENT}a head of its own (correlation"),
        (
            {EMBED: E, HEAD: E + 0.3 * OTHER},
            TIED,
            *("error", f"{DIFFERENT}they drifted apart (correlation 0.9"),
        ),
        ({EMBED: E, HEAD: numbers(48, 16)}, TIED, "error", "F32[48,16] and F32[40,16]"),
        ({EMBED: E, HEAD: E.copy()}, TIED, "waste", EQUAL),
        ({EMBED: E, FF_OUT: E.copy()}, TIED, "waste", EQUAL),
        ({EMBED: E, FF_OUT: OTHER}, TIED, "doubt", f"{DIFFERENT}a head of its own"),
        (QUANTIZED, TIED, "doubt", "one is quantized"),
        (
            {EMBED: E},
            config_of(True, text_config=False),
            "error",
            "config.json says both: tied by tie_word_embeddings, "
            "untied by text_config.tie_word_embeddings",
        ),
        ({EMBED: E, HEAD: E + 9}, config_of(False, vision_config=True), "doubt", "nearly equal"),
        ({EMBED: E}, LM | {"text_config": config_of(True)}, "tie", "config.json says tied"),
        ({EMBED: E}, UNTIED, "error", "says untied, and no head is stored beside " + EMBED),
        ({EMBED: E}, config_of(False), "doubt", "says untied, and no head is stored"),
        ({EMBED: E, HEAD: E.copy()}, UNTIED, "doubt", "are equal: 2.6 kB twice"),
        ({EMBED: E, HEAD: E + 0.1 * OTHER}, UNTIED, "doubt", "nearly equal (correlation 0.9"),
        (SEVERAL, TIED, "waste", f"{OUTER} and {INNER} are both stored, and equal"),
        (
            {HEAD: E, DECODER: E.copy(), ENCODER: numbers(24, 16)},
            TIED | {"architectures": ["MarianMTModel"]},
            *("waste", f"{HEAD} and {DECODER} are both stored, and equal"),
        ),
        *(
            ({EMBED: E, name: numbers(*shape, seed=1)}, UNTIED, "error", "no head is stored")
            for name, shape in {
                "model.layers.0.mlp.weight": (40, 16),
                "model.layers_0.output.weight": (40, 16),
                "h.0.attention.heads.0.weight": (40, 16),
                "vision_model.head.weight": (24, 16),
                "v_head.weight": (1, 16),
                "lm_head.bias": (40,),
            }.items()
        ),
    ],
)
def test_what_is_said(file: Any, arrays: Any, config: Any, level: str, text: str) -> None:
    """By the config and the arrays: one finding, of this level, with figures and both sides."""
    ((found_level, said),) = found(file(arrays, config))
    assert (found_level, text in said) == (level, True), said


def test_bytes_and_metadata(file: Any) -> None:
    """A copy that is equal counts as waste; a head that is tied by alias metadata is a tie."""
    (finding,) = check(file({EMBED: E, HEAD: E.copy()}, UNTIED))
    assert finding.nbytes == 2560
    for config in (TIED, UNTIED):
        tie = [("tie", f"{FF_OUT} is {EMBED}, by alias metadata")]
        assert found(file({EMBED: E}, config, {FF_OUT: EMBED})) == tie


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ('{"tie_word_embeddings": "yes"}', 'says "yes" at tie_word_embeddings: neither true nor'),
        ('{"text_config": {"tie_word_embeddings": 1}}', "1 at text_config.tie_word_embeddings"),
        ('{"x": 1, "x": 2, "y": {"z": 1, "z": 1}}', "has z, x twice: readers may take either"),
    ],
)
def test_an_odd_config(file: Any, config: str, text: str) -> None:
    """What readers may understand in different ways is a doubt."""
    path = file({EMBED: E})
    (path.parent / "config.json").write_text(config)
    ((level, line),) = found(path)
    assert (level, text in line) == ("doubt", True)


def test_both_quantized(file: Any, tmp_path: Path) -> None:
    """Config tied, and both are quantized and equal in all parts: waste, and written once."""
    parts = {"qweight": np.arange(640, dtype=np.int32).reshape(16, 40), "scales": numbers(1, 40)}
    arrays = {
        f"{module}.{part}": array
        for module in ("model.embed_tokens", "lm_head")
        for part, array in parts.items()
    }
    path = file(arrays, LM | {"tie_word_embeddings": True})
    ((level, text),) = found(path)
    assert (level, "both stored, and equal: 2.7 kB twice" in text) == ("waste", True)
    write_once(str(path), str(out := tmp_path / "out.safetensors"))
    assert load_file(out).keys() == {"model.embed_tokens.qweight", "model.embed_tokens.scales"}
    arrays["lm_head.scales"] = arrays["lm_head.scales"] + 1
    assert found(file(arrays)) == []


T5 = ("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", HEAD)


@pytest.mark.parametrize(
    ("architecture", "names"),
    [
        (CLASSIFIER, ("tok_embeddings.weight", ("output.weight", 3, 16))),
        ("XForCausalLM", (EMBED, HEAD)),
        ("MolmoForCausalLM", ("transformer.wte.embedding", "transformer.ff_out.weight")),
        ("InternLM2ForCausalLM", ("model.tok_embeddings.weight", "output.weight")),
        ("XForCausalLM", (EMBED, "generator.weight")),
        ("XForCausalLM", (EMBED, "any.name.at_all")),
        ("XForCausalLM", (EMBED, ("any.kernel", 16, 40))),
        ("XForCausalLM", (EMBED, (HEAD, 48, 16))),
        ("XForCausalLM", (EMBED, ("lm_head.kernel", 16, 40))),
        ("XForCausalLM", (EMBED, ("final.logits.weight", 48, 16))),
        ("ChatGLMForCausalLM", ("t.embedding.word_embeddings.weight", "t.output_layer.weight")),
        (CLASSIFIER, (EMBED, ("score.weight", 1, 16))),
        (CLASSIFIER, (EMBED, ("classifier.0.weight", 24, 16), ("classifier.2.weight", 3, 24))),
        (CLASSIFIER, (EMBED, ("head.mlp.0.weight", 24, 16))),
        (BOTH, ("text_encoder.shared.weight", *((f"lm_heads.{i}.weight", 24, 16) for i in "012"))),
        (BOTH, (EMBED, ("codebooks_head.weight", 3, 16, 24))),
        (BOTH, (EMBED, ("audio.codec_head.weight", 24, 16))),
        (BOTH, T5),
        (BOTH, (INNER, OUTER, ("vision_model.head.mlp.fc1.weight", 24, 16))),
    ],
)
def test_heads_of_many_models(file: Any, architecture: str, names: Any) -> None:
    """A head is known by its shape or its name, whatever that is: nothing is said of one."""
    rows = [(name, 40, 16) if isinstance(name, str) else name for name in names]
    arrays = {name: numbers(*shape, seed=i) for i, (name, *shape) in enumerate(rows)}
    arrays["model.layers.0.mlp.weight"] = numbers(16, 16, seed=99)
    config = {"architectures": [architecture], "tie_word_embeddings": False}
    assert found(file(arrays, config)) == []
