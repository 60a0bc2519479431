# SPDX-License-Identifier: Apache-2.0
"""The doctor's table of ties says what the installed transformers declares."""

import importlib
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", minversion="5.0")

from pydag.doctor import known

pytestmark = pytest.mark.filterwarnings("ignore")  # what other libraries warn about
CURE = "the table differs from the installed transformers: run `make known-ties`"


@pytest.fixture(scope="module")
def found() -> Any:
    """The program that makes the table, and the classes that it finds."""
    sys.path.insert(0, str(Path(__file__).parents[2] / ".ci"))
    try:
        with warnings.catch_warnings(action="ignore"):
            facts = importlib.import_module("known_ties.facts")
            return facts, facts.models.architectures()
    finally:
        del sys.path[0]


def test_every_architecture_is_known(found: Any) -> None:
    """The table has the classes that a config may name, those that tie nothing included."""
    missing = [name for name in found[1] if known.declared(name) is None]
    assert (missing, known.known_count()) == ([], len(found[1])), CURE


def test_each_declared_name_is_in_the_table(found: Any) -> None:
    """A tied name that a class declares letter by letter has its declared source in the table."""
    count = 0
    for name, model_class in found[1].items():
        row = known.declared(name)
        declared = model_class._tied_weights_keys
        assert row is not None, CURE
        assert row.prefix == model_class.base_model_prefix, CURE
        # Marian declares others where its config shares the embeddings.
        if isinstance(declared, dict) and row.ties and name != "MarianMTModel":
            ties = dict(row.ties)
            for target, source in declared.items():
                if re.fullmatch(r"[\w.]+\.(?:weight|bias)", target):
                    assert ties.get(target) == source.strip("^$"), (name, target, CURE)
                    count += 1
    assert count > 400


@pytest.mark.parametrize(
    "name",
    [
        "GPT2LMHeadModel",
        "LlamaForCausalLM",
        "T5ForConditionalGeneration",
        "BartForConditionalGeneration",
        "MarianMTModel",
        "DeformableDetrForObjectDetection",
        "ZambaForCausalLM",
        "LlavaForConditionalGeneration",
        "Qwen2VLForConditionalGeneration",
        "BertModel",
        "BartModel",
    ],
)
def test_what_is_tied_in_a_model_is_in_the_table(found: Any, name: str) -> None:
    """Small models of a class tie what the table says, and where it is decided."""
    facts, classes = found
    now, row = facts.facts_of(name, classes[name]), known.declared(name)
    assert now.is_built
    assert row is not None
    assert (row.ties, row.prefix, row.places) == (now.ties, now.prefix, now.places), CURE
    assert row.is_always_tied == (bool(now.ties) and not now.places), CURE
    for values, ties in now.others:
        other = known.declared(name, dict(values))
        assert other is not None
        assert other.ties == ties, CURE


@pytest.mark.parametrize("model_type", ["gemma", "t5", "bart", "gpt2", "llama", "gemma3", "mamba"])
def test_defaults(model_type: str) -> None:
    """A config that leaves `tie_word_embeddings` out is tied where the table says that it is."""
    with warnings.catch_warnings(action="ignore"):
        auto = importlib.import_module("transformers.models.auto.configuration_auto")
        config = auto.CONFIG_MAPPING[model_type]()
    assert known.default_tied(model_type) is config.tie_word_embeddings, CURE
