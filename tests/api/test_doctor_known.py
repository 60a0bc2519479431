# SPDX-License-Identifier: Apache-2.0
"""The doctor's table of what transformers declares as tied."""

import re
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("safetensors")
from model_files import numbers, write_file
from operations import run_apart

from pydag.doctor import known
from pydag.files import check


def test_the_table_is_small_and_quickly_read() -> None:
    """The table has less than 60 kB, and is read in a few milliseconds, once."""
    assert known.TABLE.stat().st_size < 60_000
    times = []
    for _ in range(5):
        known._tables.cache_clear()
        start = time.process_time()
        assert known.known_count() > 1_700
        times.append(time.process_time() - start)
    assert min(times) < 0.02


def test_the_table_is_read_when_it_is_needed() -> None:
    """The table is read when a class is looked up first, and no other library is imported."""
    source = """
import sys
from pydag.doctor import known
print(known._tables.cache_info().currsize)
known.declared("GPT2LMHeadModel")
print(known._tables.cache_info().currsize, *{"torch", "transformers"} & sys.modules.keys())
"""
    assert run_apart(source).split() == ["0", "1"]


HEAD = "lm_head.weight"


@pytest.mark.parametrize(
    ("name", "ties", "prefix"),
    [
        ("LlamaForCausalLM", {HEAD: "model.embed_tokens.weight"}, "model"),
        ("GPT2LMHeadModel", {HEAD: "transformer.wte.weight"}, "transformer"),
        ("MambaForCausalLM", {HEAD: "backbone.embeddings.weight"}, "backbone"),
        (
            "ModernBertForMaskedLM",
            {"decoder.weight": "model.embeddings.tok_embeddings.weight"},
            "model",
        ),
        (
            "BertForMaskedLM",
            {
                "cls.predictions.decoder.bias": "cls.predictions.bias",
                "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
            },
            "bert",
        ),
        ("LlamaModel", {}, "model"),
        ("ViTForImageClassification", {}, "vit"),
    ],
)
def test_ties_of_a_class(name: str, ties: dict[str, str], prefix: str) -> None:
    """A class has its ties and the prefix of its base model; many classes tie nothing."""
    row = known.declared(name)
    assert row is not None
    assert (dict(row.ties), row.prefix, row.is_always_tied) == (ties, prefix, False)
    assert row.places == (("tie_word_embeddings",) if ties else ())


def test_an_unknown_name_is_none() -> None:
    """A class or a family that the table lacks gives None, and so does a place without a value."""
    assert known.declared("MyOwnForCausalLM") is None
    assert known.declared("") is None
    assert known.default_tied("my_own") is None
    assert known.default_tied("gpt2", "text_config.tie_word_embeddings") is None


def test_the_version_is_known() -> None:
    """The table says of which transformers it is."""
    assert re.match(r'{"transformers":"5\.\d+\.\d+"', known.TABLE.read_text("utf-8"))


def test_some_classes_are_always_tied() -> None:
    """T5 and its kin are tied whatever the config says; no place decides."""
    for name in ("T5ForConditionalGeneration", "MT5Model", "UMT5EncoderModel", "UdopModel"):
        row = known.declared(name)
        assert row is not None
        assert row.is_always_tied
        assert row.places == ()
        assert dict(row.ties)["encoder.embed_tokens.weight"] == "shared.weight"


def test_places_of_nested_configs() -> None:
    """Where a nested config decides, too, its place is named after the outer one."""
    places = {
        "LlavaForConditionalGeneration": ("", "text_config."),
        "Qwen2VLForConditionalGeneration": ("", "text_config."),
        "Llama4ForConditionalGeneration": ("text_config.",),
        "BarkModel": ("fine_acoustics_config.",),
    }
    for name, prefixes in places.items():
        row = known.declared(name)
        assert row is not None
        assert row.places == tuple(f"{prefix}tie_word_embeddings" for prefix in prefixes)
    row = known.declared("Lfm2ForCausalLM")
    assert row is not None
    assert row.places == ("tie_embedding", "tie_word_embeddings")


def test_names_in_files_are_targets() -> None:
    """A name that transformers writes in place of the model's own name has the same source."""
    row = known.declared("LlavaForConditionalGeneration")
    assert row is not None
    source = "model.language_model.embed_tokens.weight"
    targets = ("language_model.lm_head.weight", "language_model.model.embed_tokens.weight", HEAD)
    assert dict(row.ties) == dict.fromkeys(targets, source)


def test_patterns_for_names_with_numbers() -> None:
    """A tied name with the number of a layer is matched by a pattern, which gives its source."""
    found = {}
    for name in ("ZambaForCausalLM", "DFineForObjectDetection"):
        row = known.declared(name)
        assert row is not None
        for array in ("model.layers.11.shared_transf.q.weight", "bbox_embed.2.layers.0.bias"):
            for target, source in row.ties:
                if match := re.fullmatch(target, array):
                    found[array] = match.expand(source)
    assert found == {
        "model.layers.11.shared_transf.q.weight": "model.layers.*.shared_transf.q.weight",
        "bbox_embed.2.layers.0.bias": "model.decoder.bbox_embed.2.layers.0.bias",
    }


def test_the_config_may_change_what_is_tied() -> None:
    """Marian's tied names depend on a field of the config, those of an encoder on its decoder."""
    marian = known.declared("MarianMTModel", {"share_encoder_decoder_embeddings": False})
    assert marian is not None
    assert marian.ties == ((HEAD, "model.decoder.embed_tokens.weight"),)
    for config in (None, {}, {"share_encoder_decoder_embeddings": True}):
        marian = known.declared("MarianMTModel", config)
        assert marian is not None
        assert dict(marian.ties)[HEAD] == "model.shared.weight"
    trocr = known.declared("VisionEncoderDecoderModel", {"decoder": {"model_type": "trocr"}})
    assert trocr is not None
    tie = ("decoder.output_projection.weight", "decoder.model.decoder.embed_tokens.weight")
    assert trocr.ties == (tie,)
    other = known.declared("VisionEncoderDecoderModel", {"decoder": 3})
    assert other is not None
    assert other.ties == ()


@pytest.mark.parametrize(
    ("model_type", "place", "is_tied"),
    [
        ("gemma", "", True),
        ("t5", "", True),
        ("bart", "", True),
        ("gpt2", "", True),
        ("llama", "", False),
        ("qwen2", "", False),
        ("gemma3", "text_config.", True),
        ("llava", "text_config.", False),
        ("blip-2", "text_config.", True),
        ("vit", "", None),
    ],
)
def test_defaults(model_type: str, place: str, is_tied: bool | None) -> None:
    """A family has a default for `tie_word_embeddings`, at the top and in a nested config."""
    assert known.default_tied(model_type, f"{place}tie_word_embeddings") is is_tied


def test_every_row_is_sound() -> None:
    """A source names the groups that its target has, and is no target of another source."""
    for name, row in known._tables().architectures.items():
        for target, source in row.ties:
            groups = re.compile(target).groups
            assert groups == len(re.findall(r"\\\d", source)), (name, target)
            assert target != source
            assert dict(row.ties).get(source, source) == source


def array_name(pattern: str) -> str:
    """A name that a target matches."""
    name = re.sub(r"\(\.\+\\\.\(\?:([^|)]*)[^)]*\)\)", r"inner.\1", pattern)
    name = name.replace(r"\d+", "7").replace("(.+)", "inner.weight").replace("\\", "")
    assert re.fullmatch(pattern, name), (pattern, name)
    return name


def put(config: dict[str, Any], place: str, value: object) -> None:
    *path, last = place.split(".")
    for name in path:
        config = config.setdefault(name, {})
    config[last] = value


def every_tie() -> list[tuple[dict[str, Any], str, str]]:
    """Each tie of each class: a config that says tied, the tied name and its source."""
    tables = known._tables()
    kinds: list[tuple[str, Any]] = [(name, {}) for name in tables.architectures]
    kinds += [(name, values) for name, rows in tables.others.items() for values, _ in rows]
    found = []
    for name, values in kinds:
        config: dict[str, Any] = {"architectures": [name]}
        for place, value in values.items():
            put(config, place, value)
        row = known.declared(name, config)
        assert row is not None
        for decides in row.places:
            put(config, decides, True)
        for pattern, template in row.ties:
            target = array_name(pattern)
            match = re.fullmatch(pattern, target)
            assert match is not None
            found.append((config, target, match.expand(template).replace("*", "2")))
    return found


@pytest.mark.once
def test_check_finds_each_tie_that_drifted(tmp_path: Path) -> None:
    """The doctor reports an error for each tie of the table whose two stored arrays differ."""
    first, second = numbers(32, 16), numbers(32, 16, seed=1)
    ties, missed = every_tie(), []
    for config, target, source in ties:
        write_file(tmp_path, {target: first, source: second}, config)
        report = check(tmp_path)
        if not any(f.level == "error" and {target, source} <= {*f.names} for f in report):
            missed.append((config, target, source))
    assert missed == []
    assert len(ties) > 750
