# SPDX-License-Identifier: Apache-2.0
"""The doctor on names that transformers declares as one array: by config and architecture."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("safetensors")
from model_files import EMBED, HEAD, LM, found, numbers, write_config, write_file, write_gguf
from safetensors.numpy import load_file

from pydag.doctor.known import known_count
from pydag.doctor.repair import write_once
from pydag.files import check

E, OTHER = numbers(40, 16), numbers(40, 16, seed=1)
DRIFTED = E + 0.3 * OTHER
TIED, UNTIED = LM | {"tie_word_embeddings": True}, LM | {"tie_word_embeddings": False}
INNER, OUTER = "language_model.model.embed_tokens.weight", "language_model.lm_head.weight"
QUANTIZED = {
    EMBED: E,
    "lm_head.qweight": np.arange(640, dtype=np.int32).reshape(16, 40),
    "lm_head.scales": np.ones((1, 40), np.float16),
}
DIFFERENT, EQUAL = "both stored and different: ", "both stored, and equal: 2.6 kB twice"
FF_OUT = "model.ff_out.weight"
UNKNOWN = f"FooForCausalLM isn't known ({known_count()} are); "
T5 = {"architectures": ["T5ForConditionalGeneration"], "tie_word_embeddings": True}
SHARED = ("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", HEAD)
BERT = {"architectures": ["BertForMaskedLM"], "model_type": "bert"}
WORDS, DECODER = "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder"


def config_of(tied: object, **nested: object) -> dict[str, Any]:
    """A config that says this, and what is nested in it another thing."""
    return {"tie_word_embeddings": tied} | {
        name: {"tie_word_embeddings": value} for name, value in nested.items()
    }


def of(architecture: str, **config: object) -> dict[str, Any]:
    """The config of a class."""
    return {"architectures": [architecture], **config}


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Writes a safetensors file, with a config beside it, and returns its path."""
    return lambda *arguments: write_file(tmp_path, *arguments)


@pytest.mark.parametrize(
    ("arrays", "config", "level", "text"),
    [
        ({EMBED: E}, TIED, "tie", f"{HEAD} is {EMBED}: config.json says tied, and one is stored"),
        ({HEAD: E}, TIED, "tie", f"{EMBED} is {HEAD}: config.json says tied, and one is stored"),
        ({EMBED: E, HEAD: OTHER}, TIED, "error", f"{DIFFERENT}a head of its own (correlation"),
        (
            {EMBED: E, HEAD: DRIFTED},
            TIED,
            *("error", f"{DIFFERENT}they drifted apart (correlation 0.9"),
        ),
        ({EMBED: E, HEAD: E + np.eye(40, 16, dtype=E.dtype)}, TIED, "error", "difference 1)"),
        ({EMBED: E, HEAD: numbers(48, 16)}, TIED, "error", "F32[48,16] and F32[40,16]"),
        ({EMBED: E, HEAD: E.copy()}, TIED, "waste", EQUAL),
        ({EMBED: E, HEAD: E.astype(np.float16)}, TIED, "waste", "equal but for their types: F16"),
        ({EMBED: E, HEAD: E.T.copy()}, TIED, "tie", "transposed"),
        ({EMBED: E, HEAD: DRIFTED.T.copy()}, TIED, "error", "they drifted apart (correlation 0.9"),
        (
            {EMBED: E.astype(np.float16), HEAD: DRIFTED.astype(np.float16)},
            TIED,
            *("error", "they drifted apart (correlation 0.9"),
        ),
        (
            {EMBED: E.astype(np.float32), HEAD: OTHER.astype(np.float16)},
            TIED,
            *("error", "a head of its own (correlation"),
        ),
        (
            {EMBED: E * np.nan, HEAD: E},
            TIED,
            *("error", "a head of its own (no correlation)"),
        ),
        ({"model.norm.weight": E}, TIED, "error", f"none of {HEAD}, {EMBED} is stored"),
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
        ({EMBED: E, HEAD: E.copy()}, UNTIED, "doubt", "are equal: 2.6 kB twice"),
        ({EMBED: E, HEAD: E + 0.1 * OTHER}, UNTIED, "doubt", "nearly equal (correlation 0.9"),
        *(
            ({EMBED: E, name: numbers(*shape, seed=1)}, UNTIED, "error", "no head is stored")
            for name, shape in {
                "model.layers.0.mlp.weight": (40, 16),
                "vision_model.head.weight": (24, 16),
                "v_head.weight": (1, 16),
                "lm_head.bias": (40,),
            }.items()
        ),
    ],
)
def test_a_head_and_its_embedding(
    file: Any, arrays: Any, config: Any, level: str, text: str
) -> None:
    """Config and arrays give one finding, of this level, with figures and both sides."""
    ((found_level, said),) = found(file(arrays, config))
    assert (found_level, text in said) == (level, True), said


def test_an_error_names_each_with_figures(file: Any) -> None:
    """An error about a tie has both names, the correlation and the largest of all differences."""
    head = E.copy()
    head[39, 15] += 2.5
    (finding,) = check(file({EMBED: E, HEAD: head}, TIED))
    assert finding.names == (HEAD, EMBED)
    assert finding.text.endswith("they drifted apart (correlation 1.000, largest difference 2.5)")


@pytest.mark.parametrize("odd", SHARED)
@pytest.mark.parametrize("stored", [SHARED, SHARED[::-1], SHARED[:3], SHARED[1:]])
def test_one_of_a_group_differs(file: Any, stored: Any, odd: str) -> None:
    """The one of several tied names that differs is an error, whichever it is and is missing."""
    if odd not in stored:
        return
    arrays = {name: DRIFTED if name == odd else E.copy() for name in stored}
    error, *rest = check(file(arrays, T5))
    assert (error.level, error.names[0]) == ("error", odd)
    assert error.text.startswith(f"config.json says tied, and {odd} and each of ")
    assert set(error.names) == set(stored)
    assert "(correlation 0.9" in error.text
    assert "largest difference" in error.text
    assert [(finding.level, finding.nbytes) for finding in rest] == [
        ("waste", 2560 * (len(stored) - 2))
    ]


def test_a_group_of_equal_names(file: Any) -> None:
    """All names equal is waste; one name stored is a tie with all of them; none is an error."""
    (finding,) = check(file({name: E.copy() for name in SHARED}, T5))
    assert (finding.level, finding.nbytes) == ("waste", 3 * 2560)
    assert sorted(finding.names) == sorted(SHARED)
    for name in SHARED:
        (finding,) = check(file({name: E}, T5))
        assert (finding.level, finding.names[0]) == ("tie", name)
        assert sorted(finding.names) == sorted(SHARED)
    (finding,) = check(file({"encoder.block.0.weight": E}, T5))
    assert (finding.level, sorted(finding.names)) == ("error", sorted(SHARED))


def test_biases(file: Any) -> None:
    """The biases of a head are a group of their own, also if their numbers are few or constant."""
    bias = np.zeros(40, np.float32)
    arrays = {WORDS: E, "cls.predictions.bias": bias, f"{DECODER}.bias": bias.copy()}
    levels = sorted(finding.level for finding in check(file(arrays, BERT)))
    assert levels == ["tie", "waste"]
    arrays[f"{DECODER}.bias"] = bias + 0.5
    (error,) = check(file(arrays, BERT)).at("error")
    assert set(error.names) == {"cls.predictions.bias", f"{DECODER}.bias"}
    assert error.text.endswith("of its own (no correlation, largest difference 0.5)")


def test_lists_of_heads(file: Any) -> None:
    """Each head of a detector is the first one, where its class declares that."""
    names = [f"bbox_embed.{i}.layers.0.weight" for i in range(3)]
    config = of("DeformableDetrForObjectDetection", tie_word_embeddings=True)
    (finding,) = check(file({name: E.copy() for name in names}, config))
    assert (finding.level, sorted(finding.names)) == ("waste", names)
    (error, _) = check(file({name: E.copy() for name in names} | {names[2]: DRIFTED}, config))
    assert (error.level, error.names[0], set(error.names)) == ("error", names[2], set(names))


@pytest.mark.parametrize("is_refined", [True, False])
@pytest.mark.parametrize("is_two_stage", [True, False])
def test_two_fields_that_change_the_ties(file: Any, is_refined: bool, is_two_stage: bool) -> None:
    """A detector's heads are the decoder's, or each other, by two fields of its config at once."""
    config = of(
        "DeformableDetrForObjectDetection",
        tie_word_embeddings=True,
        with_box_refine=is_refined,
        two_stage=is_two_stage,
    )
    names = [f"class_embed.{i}.weight" for i in range(2)]
    arrays = {names[0]: E, names[1]: OTHER}
    levels = {finding.level for finding in check(file(arrays, config))}
    assert levels == ({"tie"} if is_refined and is_two_stage else {"error"})
    inner = {f"model.decoder.{name}": array.copy() for name, array in arrays.items()}
    if is_refined and is_two_stage:
        wastes = check(file(arrays | inner, config))
        assert [(finding.level, finding.nbytes) for finding in wastes] == [("waste", 2560)] * 2


@pytest.mark.parametrize(
    "prefix",
    ["", "module.", "_orig_mod.", "base_model.model.", "model.", "module._orig_mod.", "state.net."],
)
def test_wrappers(file: Any, prefix: str) -> None:
    """The prefixes that wrappers add change nothing, nor does one within a name."""
    inside = EMBED.replace("model.", "model._fsdp_wrapped_module.")
    for embed in (EMBED, inside):
        path = file({f"{prefix}{embed}": E, f"{prefix}{HEAD}": DRIFTED}, TIED)
        ((level, text),) = found(path)
        assert (level, f"{prefix}{HEAD} and {prefix}{embed} are" in text) == ("error", True)


@pytest.mark.parametrize(
    ("architecture", "names"),
    [
        ("GPT2LMHeadModel", ("wte.weight", HEAD)),
        ("LlamaForCausalLM", ("embed_tokens.weight", HEAD)),
        ("BertForMaskedLM", (WORDS.removeprefix("bert."), f"{DECODER}.weight")),
        ("BartModel", ("model.shared.weight", "model.encoder.embed_tokens.weight")),
    ],
)
def test_the_base_model_alone(file: Any, architecture: str, names: Any) -> None:
    """The prefix of the base model may be left out, or be there in a file of that model."""
    config = of(architecture, tie_word_embeddings=True)
    ((level, text),) = [row for row in found(file({names[0]: E}, config)) if names[1] in row[1]]
    assert (level, "one is stored" in text) == ("tie", True)
    (error,) = check(file(dict(zip(names, (E, DRIFTED), strict=True)), config)).at("error")
    assert set(error.names) == set(names)


@pytest.mark.parametrize(
    ("architecture", "names"),
    [
        ("GPTNeoXForCausalLM", ("embed_out.weight", "gpt_neox.embed_in.weight")),
        ("LlavaForConditionalGeneration", (OUTER, INNER)),
        ("Qwen2VLForConditionalGeneration", (HEAD, EMBED)),
    ],
)
def test_names_in_files(file: Any, architecture: str, names: Any) -> None:
    """Names under which transformers saves arrays count as those of its class."""
    tied, untied = (of(architecture, tie_word_embeddings=value) for value in (True, False))
    ((level, text),) = found(file({names[1]: E}, tied))
    assert (level, f"{names[0]}, " in text or f"{names[0]} is" in text) == ("tie", True), text
    ((level, text),) = found(path := file({names[0]: DRIFTED, names[1]: E}, tied))
    assert (level, f"{names[0]} and {names[1]} are" in text) == ("error", True)
    write_config(path.parent, **untied)
    assert [level for level, _ in found(path)] == ["doubt"]
    assert found(file({names[0]: OTHER, names[1]: E}, untied)) == []
    ((level, text),) = found(file({names[1]: E}, untied))
    assert (level, "no head is stored beside" in text) == ("error", True)


def test_names_of_a_class_are_not_lost(file: Any, tmp_path: Path) -> None:
    """A name that is only declared, and in neither file, is no name that was lost."""
    before = file({INNER: E}, of("LlavaForConditionalGeneration", tie_word_embeddings=True))
    (tmp_path / "after").mkdir()
    after = write_file(tmp_path / "after", {INNER: E})
    assert [finding.level for finding in check(after, against=before)] == []


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (of("FooForCausalLM", tie_word_embeddings=True), UNKNOWN),
        (config_of(True), "config.json says tied; by their names"),
    ],
)
@pytest.mark.parametrize("head", [HEAD, FF_OUT, "any.name.at_all"])
def test_an_architecture_that_is_not_known(file: Any, config: Any, text: str, head: str) -> None:
    """Names alone make no tie and no error: a doubt says what isn't known, or what differs."""
    unknown = [("doubt", f"{UNKNOWN}config.json says tied: what is one array isn't known")]
    unknown = unknown if "architectures" in config else []
    inner = {EMBED: E, "model.layers.0.mlp.weight": OTHER}
    assert found(file(inner, config)) == found(file(inner | {head: numbers(3, 16)})) == unknown
    ((level, said),) = found(file({EMBED: E, head: OTHER}, config))
    assert (level, said.startswith(text)) == ("doubt", True), said
    assert f"{head} and {EMBED} are perhaps one array, and are {DIFFERENT}" in said
    *others, (level, _) = found(file({EMBED: E, head: E.copy()}, config))
    assert (others, level) == (unknown, "waste")
    for key in (False, None):
        assert found(file({EMBED: E, head: OTHER}, config | {"tie_word_embeddings": key})) == []


def test_an_embedding_by_the_size_of_the_vocabulary(file: Any) -> None:
    """Where no name suggests an embedding, the number of words does."""
    config = of("FooForCausalLM", tie_word_embeddings=True, vocab_size=40)
    ((level, text),) = found(file({"a.weight": E, "b.weight": OTHER, "c.weight": E[:9]}, config))
    assert (level, "b.weight and a.weight are perhaps one array" in text) == ("doubt", True)
    ((_, text),) = found(file({"a.weight": E, "b.weight": OTHER}, config | {"vocab_size": 41}))
    assert "perhaps" not in text


def test_no_key(file: Any) -> None:
    """A config without the key means the default of the family, and nothing if that is unknown."""
    arrays = {EMBED: E, HEAD: DRIFTED}
    gemma = of("GemmaForCausalLM", model_type="gemma")
    ((level, text),) = found(file(arrays, gemma))
    start = f"gemma is tied by default, and {HEAD} and {EMBED} are {DIFFERENT}they drifted apart"
    assert (level, text.startswith(start)) == ("error", True), text
    ((level, text),) = found(file({EMBED: E}, gemma))
    assert (level, text) == (
        "tie",
        f"{HEAD} is {EMBED}: gemma is tied by default, and one is stored",
    )
    llama = LM | {"model_type": "llama"}
    assert found(file({EMBED: E, HEAD: OTHER}, llama)) == []
    ((level, text),) = found(file({EMBED: E}, llama))
    assert (level, text.startswith("llama is untied by default, and no head")) == ("error", True)
    ((level, text),) = found(file(arrays, LM | {"model_type": "foo"}))
    assert (level, "correlation 0.9" in text) == ("doubt", True)
    assert found(file({EMBED: E, HEAD: OTHER}, LM | {"model_type": "foo"})) == []


@pytest.mark.parametrize("names", [(EMBED, HEAD), ("gpt_neox.embed_in.weight", "embed_out.weight")])
def test_no_config(file: Any, names: Any) -> None:
    """Without a config, head and embedding by name that are alike are a doubt, and else nothing."""
    for other, said in [
        (E.copy(), "are equal: 2.6 kB twice"),
        (DRIFTED, "are nearly equal (correlation 0.9"),
        (E + 1.2 * OTHER, "are alike (correlation 0.6"),
    ]:
        ((level, text),) = found(file(dict(zip(names, (E, other), strict=True))))
        assert (level, "perhaps" in text, said in text) == ("doubt", True, True), text
    for other in (OTHER, E + 3 * OTHER, numbers(41, 16)):
        assert found(file(dict(zip(names, (E, other), strict=True)))) == []
    assert found(file({EMBED: E, FF_OUT: DRIFTED})) == []
    constant = np.ones((40, 16), np.float32)
    assert found(file({EMBED: constant, HEAD: constant.copy()})) == []


@pytest.mark.parametrize("is_tied", [True, False, None])
@pytest.mark.parametrize(
    ("architecture", "names"),
    [
        ("Qwen3Model", ("embed_tokens.weight", "norm.weight")),
        ("LlamaForSequenceClassification", (EMBED, ("score.weight", 3, 16))),
        ("LlamaForSequenceClassification", (EMBED, "score.weight")),
        ("BertModel", ("embeddings.word_embeddings.weight", "pooler.dense.weight")),
    ],
)
def test_classes_without_ties(file: Any, architecture: str, names: Any, is_tied: Any) -> None:
    """Nothing is said of a class that declares no ties, whatever the config says."""
    rows = [(name, 40, 16) if isinstance(name, str) else name for name in names]
    arrays = {name: numbers(*shape, seed=i) for i, (name, *shape) in enumerate(rows)}
    assert found(file(arrays, of(architecture, tie_word_embeddings=is_tied))) == []


def test_several_architectures(file: Any) -> None:
    """The ties of each class count; one class that isn't known hides none of another's."""
    config = TIED | {"architectures": ["FooModel", "LlamaModel", "LlamaForCausalLM"]}
    ((level, _),) = found(file({EMBED: E, HEAD: DRIFTED}, config))
    assert level == "error"


@pytest.mark.parametrize(
    "arrays",
    [
        {"tok_embeddings.weight": E, "output.weight": OTHER, "layers.0.wq.weight": -E},
        {"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": E},
        {"unet.conv_in.weight": E, "unet.conv_out.weight": OTHER},
    ],
)
@pytest.mark.parametrize("config", [TIED, UNTIED, None])
def test_files_of_other_programs(file: Any, arrays: Any, config: Any) -> None:
    """A file whose names aren't those of the class that a config names misses nothing."""
    assert [row for row in found(file(arrays, config)) if row[0] != "doubt"] == []


def test_gguf_beside_a_config(tmp_path: Path) -> None:
    """The names of a GGUF file are its own: the config says nothing about them."""
    write_config(tmp_path, **TIED)
    write_gguf(tmp_path / "m.gguf", {"token_embd.weight": E, "output.weight": OTHER})
    assert found(tmp_path / "m.gguf") == []


def test_bytes_and_metadata(file: Any) -> None:
    """A copy that is equal counts as waste; a head that is tied by alias metadata is a tie."""
    (finding,) = check(file({EMBED: E, HEAD: E.copy()}, UNTIED))
    assert finding.nbytes == 2560
    tie = ("tie", f"{HEAD} is {EMBED}, by alias metadata")
    assert found(file({EMBED: E}, TIED, {HEAD: EMBED})) == [tie]
    both = ("doubt", f"config.json says untied, and {HEAD} and {EMBED} are one array")
    assert sorted(found(file({EMBED: E}, UNTIED, {HEAD: EMBED}))) == [both, tie]


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ('{"tie_word_embeddings": "yes"}', 'says "yes" at tie_word_embeddings: neither true nor'),
        ('{"text_config": {"tie_word_embeddings": 1}}', "1 at text_config.tie_word_embeddings"),
    ],
)
def test_an_odd_config(file: Any, config: str, text: str) -> None:
    """What readers may understand in different ways is a doubt."""
    path = file({EMBED: E})
    (path.parent / "config.json").write_text(config)
    ((level, line),) = found(path)
    assert (level, text in line) == ("doubt", True)


def test_both_quantized(file: Any, tmp_path: Path) -> None:
    """Quantized names that are tied count as one each: written once if all parts are equal."""
    parts = {"qweight": np.arange(640, dtype=np.int32).reshape(16, 40), "scales": numbers(1, 40)}
    arrays = {
        f"{module}.{part}": array
        for module in ("model.embed_tokens", "lm_head")
        for part, array in parts.items()
    }
    ((level, text),) = found(path := file(arrays, TIED))
    assert (level, "both stored, and equal: 2.7 kB twice" in text) == ("waste", True)
    write_once(str(path), str(out := tmp_path / "out.safetensors"))
    assert load_file(out).keys() == {"model.embed_tokens.qweight", "model.embed_tokens.scales"}
    arrays["lm_head.scales"] = arrays["lm_head.scales"] + 1
    ((level, text),) = found(file(arrays, TIED))
    assert (level, "both are quantized" in text) == ("doubt", True)


def test_always_tied(file: Any) -> None:
    """Where a class ties always, a config that says untied means the head alone."""
    config = T5 | {"tie_word_embeddings": False}
    arrays = {"shared.weight": E, HEAD: OTHER, "encoder.block.0.weight": OTHER[:8]}
    ((level, text),) = found(file(arrays, config))
    assert (level, HEAD in text) == ("tie", False)
    ((level, text),) = found(file(arrays | {SHARED[1]: DRIFTED}, config))
    start = "T5ForConditionalGeneration is always tied, and "
    assert (level, text.startswith(start)) == ("error", True)


def test_defaults_that_disagree(file: Any) -> None:
    """What a family leaves open is no error; places may disagree as its defaults do."""
    config = of("Mistral3ForConditionalGeneration", model_type="mistral3")
    assert found(file({INNER: E, OUTER: OTHER}, config)) == []
    ((level, _),) = found(file({INNER: E, OUTER: DRIFTED}, config))
    assert level == "doubt"
    config |= {"tie_word_embeddings": True, "text_config": {"tie_word_embeddings": False}}
    ((level, _),) = found(file({INNER: E}, config))
    assert level == "tie"


def test_untied_embeddings(file: Any) -> None:
    """The head alone is an array of its own if the config says untied: embeddings may be one."""
    config = of("MarianMTModel", tie_word_embeddings=False)
    names = ("model.decoder.embed_tokens.weight", "model.encoder.embed_tokens.weight")
    assert found(file({"model.shared.weight": E, HEAD: OTHER, names[0]: E + 9}, config)) == []


def test_an_untied_head_that_is_the_embedding_transposed(file: Any) -> None:
    """Where the config says untied, a head that equals the embedding is a doubt, transposed too."""
    assert found(file({EMBED: E, HEAD: E.T.copy()}, UNTIED)) == [
        ("doubt", f"config.json says untied, and {HEAD} and {EMBED} are equal, transposed"),
        ("tie", f"{EMBED} is {HEAD}, transposed"),
    ]


def test_a_transposed_head_that_differs_in_one_number(file: Any) -> None:
    """A head that is the embedding transposed, but for one number, isn't taken for it."""
    head = E.T.copy()
    head[3, 7] += 2.5
    ((level, text),) = found(file({EMBED: E, HEAD: head}, TIED))
    assert (level, "they drifted apart (correlation " in text) == ("error", True)


def test_an_untied_head_of_another_shape(file: Any) -> None:
    """A head that has another shape than the embedding is one of its own."""
    assert found(file({EMBED: E, HEAD: numbers(48, 16)}, UNTIED)) == []
