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


@pytest.fixture
def e() -> Any:
    return numbers(40, 16)


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Writes a safetensors file, with a config beside it, and returns its path."""
    return lambda *arguments: write_file(tmp_path, *arguments)


def test_tied_by_config(file: Any, e: Any) -> None:
    """Where the config says tied, and one is stored, that is a tie."""
    path = file({EMBED: e}, {"tie_word_embeddings": True})
    text = f"{HEAD} is {EMBED}: config.json says tied, and one is stored"
    assert found(path) == [("tie", text)]


def test_a_head_of_its_own(file: Any, e: Any) -> None:
    """Config tied, and another head: an error, with the correlation of a sample."""
    path = file({EMBED: e, HEAD: numbers(40, 16, seed=1)}, {"tie_word_embeddings": True})
    ((level, text),) = found(path)
    assert level == "error"
    assert "both stored and different: a head of its own (correlation" in text


def test_drifted_apart(file: Any, e: Any) -> None:
    """The same of two that correlate: they drifted apart."""
    other = e + 0.3 * numbers(40, 16, seed=1)
    ((level, text),) = found(file({EMBED: e, HEAD: other}, {"tie_word_embeddings": True}))
    assert level == "error"
    assert "both stored and different: they drifted apart (correlation 0.9" in text


def test_a_head_of_another_shape(file: Any, e: Any) -> None:
    """Config tied, and a head of another shape: an error with both shapes."""
    path = file({EMBED: e, HEAD: numbers(48, 16)}, {"tie_word_embeddings": True})
    ((level, text),) = found(path)
    assert (level, "F32[48,16] and F32[40,16]" in text) == ("error", True)


def test_tied_and_stored_twice(file: Any, e: Any) -> None:
    """Config tied, and both stored and equal: waste, said once."""
    ((level, text),) = found(file({EMBED: e, HEAD: e.copy()}, {"tie_word_embeddings": True}))
    assert (level, "both stored, and equal: 2.6 kB twice" in text) == ("waste", True)


def test_nested_configs_disagree(file: Any, e: Any) -> None:
    """Configurations of one model that say both are an error; one of pictures doesn't count."""
    config = {"tie_word_embeddings": True, "text_config": {"tie_word_embeddings": False}}
    ((level, text),) = found(file({EMBED: e}, config))
    assert level == "error"
    assert text == (
        "config.json says both: tied by tie_word_embeddings, "
        "untied by text_config.tie_word_embeddings"
    )
    config = {"vision_config": {"tie_word_embeddings": True}, "tie_word_embeddings": False}
    assert found(file({EMBED: e, HEAD: e + 9}, config))[0][0] == "doubt"
    config = LM | {"text_config": {"tie_word_embeddings": True}}
    assert [level for level, _ in found(file({EMBED: e}, config))] == ["tie"]


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (
            '{"tie_word_embeddings": "yes"}',
            'says "yes" at tie_word_embeddings: neither true nor false',
        ),
        (
            '{"text_config": {"tie_word_embeddings": 1}}',
            "says 1 at text_config.tie_word_embeddings",
        ),
        ('{"x": 1, "x": 2, "y": {"z": 1, "z": 1}}', "has z, x twice: readers may take either"),
    ],
)
def test_an_odd_config(file: Any, e: Any, config: str, text: str) -> None:
    """What readers may understand in different ways is a doubt."""
    path = file({EMBED: e})
    (path.parent / "config.json").write_text(config)
    ((level, line),) = found(path)
    assert (level, text in line) == ("doubt", True)


def test_untied_without_a_head(file: Any, e: Any) -> None:
    """Config untied and no head: an error for a language model, else a doubt."""
    path = file({EMBED: e}, LM | {"tie_word_embeddings": False})
    text = f"config.json says untied, and no head is stored beside {EMBED}"
    assert found(path) == [("error", text)]
    path = file({EMBED: e}, {"tie_word_embeddings": False, "architectures": ["LlamaModel"]})
    assert found(path) == [("doubt", text)]


def test_untied_and_equal(file: Any, e: Any) -> None:
    """Config untied, and the two are equal or nearly so: a doubt; the bytes of a copy are waste."""
    config = LM | {"tie_word_embeddings": False}
    (finding,) = check(file({EMBED: e, HEAD: e.copy()}, config))
    assert (finding.level, finding.nbytes) == ("doubt", 2560)
    assert "are equal: 2.6 kB twice" in finding.text
    ((level, text),) = found(file({EMBED: e, HEAD: e + 0.1 * numbers(40, 16, seed=3)}, config))
    assert (level, "nearly equal (correlation 0.9" in text) == ("doubt", True)
    assert found(file({EMBED: e, HEAD: numbers(40, 16, seed=3)}, config)) == []


def test_a_quantized_head(file: Any, e: Any) -> None:
    """A quantized head beside an embedding that the config calls tied is a doubt."""
    arrays = {
        EMBED: e,
        "lm_head.qweight": np.arange(640, dtype=np.int32).reshape(16, 40),
        "lm_head.scales": np.ones((1, 40), np.float16),
    }
    ((level, text),) = found(file(arrays, LM | {"tie_word_embeddings": True}))
    assert (level, "one is quantized" in text) == ("doubt", True)


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


CLASSIFIER = "LlamaForSequenceClassification"
BOTH = "XForConditionalGeneration"
T5 = ("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", HEAD)
INNER, OUTER = "language_model.model.embed_tokens.weight", "language_model.lm_head.weight"


@pytest.mark.parametrize(
    ("architecture", "names"),
    [
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


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("model.layers.0.mlp.weight", (40, 16)),
        ("model.layers_0.output.weight", (40, 16)),
        ("h.0.attention.heads.0.weight", (40, 16)),
        ("vision_model.head.weight", (24, 16)),
        ("v_head.weight", (1, 16)),
        ("lm_head.bias", (40,)),
    ],
)
def test_what_is_no_head(file: Any, e: Any, name: str, shape: tuple[int, ...]) -> None:
    """What is in a layer, of pictures, of one row, or a bias is no head for words."""
    config = LM | {"tie_word_embeddings": False}
    ((level, text),) = found(file({EMBED: e, name: numbers(*shape, seed=1)}, config))
    assert (level, "no head is stored" in text) == ("error", True)


def test_tied_to_a_head_of_another_name(file: Any, e: Any) -> None:
    """A head of a name that isn't known is waste, a doubt if it differs, or a tie by metadata."""
    config, other = LM | {"tie_word_embeddings": True}, "model.ff_out.weight"
    ((level, text),) = found(file({EMBED: e, other: e.copy()}, config))
    assert (level, "both stored, and equal: 2.6 kB twice" in text) == ("waste", True)
    ((level, text),) = found(file({EMBED: e, other: numbers(40, 16, seed=1)}, config))
    assert (level, "both stored and different: a head of its own" in text) == ("doubt", True)
    tie = [("tie", f"{other} is {EMBED}, by alias metadata")]
    assert found(file({EMBED: e}, config, {other: EMBED})) == tie
    assert found(file({EMBED: e}, config | {"tie_word_embeddings": False}, {other: EMBED})) == tie


def test_several_heads(file: Any, e: Any) -> None:
    """Of several heads the nearest to the embedding is the one that the config ties to it."""
    config = {"architectures": [BOTH], "tie_word_embeddings": True}
    arrays = {f"codec.{i}.lm_head.weight": numbers(24, 16, seed=int(i)) for i in "12"}
    arrays |= {INNER: e, "audio.lm_head.weight": numbers(24, 16), OUTER: e.copy()}
    ((level, text),) = found(file(arrays, config))
    assert (level, f"{OUTER} and {INNER} are both stored, and equal" in text) == ("waste", True)


def test_encoder_and_decoder(file: Any, e: Any) -> None:
    """A head is tied to the decoder's embedding; a classifier called `output` to none."""
    config = {"architectures": ["MarianMTModel"], "tie_word_embeddings": True}
    encoder, decoder = (f"model.{part}.embed_tokens.weight" for part in ("encoder", "decoder"))
    arrays = {encoder: numbers(24, 16), decoder: e, HEAD: e.copy()}
    ((level, text),) = found(file(dict(sorted(arrays.items(), reverse=True)), config))
    assert (level, f"{HEAD} and {decoder} are both stored, and equal" in text) == ("waste", True)
    arrays = {"tok_embeddings.weight": e, "output.weight": numbers(3, 16)}
    config = {"architectures": [CLASSIFIER], "tie_word_embeddings": True}
    assert found(file(arrays, config)) == []
