# SPDX-License-Identifier: Apache-2.0
"""The models of transformers: their classes, and small models of them without any numbers."""

import contextlib
import copy
import importlib
import inspect
import io
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
import transformers.models
from transformers import PretrainedConfig, PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import PrefixChange, WeightRenaming, apply_renamings

LAYERS = re.compile(r"(?:n|num|depth|encoder|decoder|hidden|attention|layers?|blocks?|_)+")
TIED = "tie_word_embeddings"
# Fields of a config that say whether something is tied, and others that change what is tied.
PLACE = re.compile(r"(?:.*_)?tied?(?:_.*)?")
SWITCH = re.compile(r"(?:.*_)?(?:share|shared|refine|two_stage)(?:_.*)?")
# What a config may be without, but no model.
_NEEDED = {r".*_size": 64, r"(?:num|n)_.*": 4, "head_dim": 16, "pad_token_id": 0}
# Parts without words in place of those that need another library.
_STAND_INS = {
    "vision_config": {"model_type": "siglip_vision_model"},
    "backbone_config": {"model_type": "resnet", "out_features": ["stage4"]},
}

# Models that contain a model of another family: where the config names it, the usual ones, and what
# else the config needs.
_DECODERS = ("bert", "gpt2", "mbart", "roberta", "trocr", "xlm-roberta")
PARTS: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "Blip2ForConditionalGeneration": ("text_config", ("opt", "t5"), {}),
    "InstructBlipForConditionalGeneration": ("text_config", ("opt", "t5"), {}),
    "InstructBlipVideoForConditionalGeneration": ("text_config", ("opt", "t5"), {}),
    "VisionEncoderDecoderModel": ("decoder", _DECODERS, {"encoder": {"model_type": "vit"}}),
    "SpeechEncoderDecoderModel": ("decoder", _DECODERS, {"encoder": {"model_type": "wav2vec2"}}),
    "EncoderDecoderModel": ("decoder", _DECODERS, {"encoder": {"model_type": "bert"}}),
}


def architectures() -> dict[str, type[PreTrainedModel]]:
    """The classes that a config may name, by their names."""
    found: dict[str, type[PreTrainedModel]] = {}
    root = transformers.models
    for family in sorted(module.name for module in pkgutil.iter_modules(root.__path__)):
        package = importlib.import_module(f"{root.__name__}.{family}")
        for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
            if module.startswith("modeling_"):
                found |= _classes_in(f"{package.__name__}.{module}")
    return found


def _classes_in(module_name: str) -> dict[str, type[PreTrainedModel]]:
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        print(f"{module_name} is left out: {error}")
        return {}
    found = {name: getattr(module, name) for name in module.__all__}
    return {
        name: value
        for name, value in found.items()
        if inspect.isclass(value)
        and issubclass(value, PreTrainedModel)
        # These are what the classes of a family have in common.
        and not name.endswith("PreTrainedModel")
    }


def parts_of(config: PretrainedConfig, prefix: str = "") -> Iterator[tuple[str, PretrainedConfig]]:
    """A config and those in it, each with what stands in front of its fields."""
    yield prefix, config
    for name, part in vars(config).items():
        if isinstance(part, PretrainedConfig):
            yield from parts_of(part, f"{prefix}{name}.")


class Fields(NamedTuple):
    """Dotted places of a config.

    Attributes:
        places: Those that may decide whether something is tied.
        aliases: Those that may decide it in old files.
        switches: Those that may decide what is tied, each with a value that isn't the usual one.
    """

    places: list[str]
    aliases: list[str]
    switches: dict[str, bool | int]


def fields_of(config: PretrainedConfig) -> Fields:
    """The places of a config that may have to do with ties."""
    found = Fields([], [], {})
    for prefix, part in parts_of(config):
        values = vars(part)
        if "num_mem_blocks" in values:
            found.switches[f"{prefix}num_mem_blocks"] = 2
        names = [name for name, value in values.items() if type(value) is bool]
        # Old files have it where the class has no such field.
        if not prefix or hasattr(part, "vocab_size"):
            names.append(TIED)
        for name in dict.fromkeys(names):
            if PLACE.fullmatch(name):
                found.places.append(prefix + name)
            elif SWITCH.fullmatch(name):
                found.switches[prefix + name] = not values[name]
        read = re.findall(r'"(tie_\w+)"', inspect.getsource(type(part)))
        found.aliases.extend(prefix + name for name in {*read} - {*names, TIED})
    return found


def changed(content: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a config with other values at some dotted places; None takes a field away."""
    result = copy.deepcopy(dict(content))
    for place, value in values.items():
        *path, last = place.split(".")
        inner = result
        for name in path:
            inner = inner.setdefault(name, {})
        if value is None:
            inner.pop(last, None)
        else:
            inner[last] = value
    return result


def build(model_class: type[PreTrainedModel], content: Mapping[str, Any]) -> PreTrainedModel:
    """A model by the content of its config: with few layers and what is missing, if that works."""
    simple = {name: _STAND_INS.get(name, value) for name, value in content.items()}
    first: Exception | None = None
    for tried, is_small, is_filled in (
        (content, True, False),
        (content, False, False),
        (content, True, True),
        (simple, True, True),
        (simple, False, True),
    ):
        try:
            config = model_class.config_class.from_dict(copy.deepcopy(dict(tried)))
            if is_filled:
                _fill(config)
            if is_small:
                _shrink(config)
            with torch.device("meta"), contextlib.redirect_stdout(io.StringIO()):
                return model_class(config)
        except Exception as error:  # whatever a class says to a config that doesn't fit
            first = first or error
    assert first is not None
    raise first


def _shrink(config: PretrainedConfig) -> None:
    for _, part in parts_of(config):
        for name, value in list(vars(part).items()):
            if type(value) is int and value > 4 and "layer" in name and LAYERS.fullmatch(name):
                setattr(part, name, 4)


def _fill(config: PretrainedConfig) -> None:
    for _, part in parts_of(config):
        for name, value in list(vars(part).items()):
            for pattern, needed in _NEEDED.items() if value is None else ():
                if re.fullmatch(pattern, name):
                    setattr(part, name, needed)


def arrays_of(model: PreTrainedModel) -> dict[str, int]:
    """All names of a model's arrays, each with the identity of its array."""
    found = [*model.named_parameters(remove_duplicate=False)]
    found += model.named_buffers(remove_duplicate=False)
    return {name: id(array) for name, array in found}


def ties_of(model: PreTrainedModel) -> dict[str, str]:
    """Each name that is declared to be tied, and is, with its source."""
    arrays = arrays_of(model)
    declared = model.all_tied_weights_keys
    return {
        target: source
        for target, source in declared.items()
        if target in arrays and arrays[target] == arrays.get(source)
    }


def is_literal(model: PreTrainedModel, target: str) -> bool:
    """Whether a model, or a part of it, declares a tied name letter by letter."""
    for prefix, part in model.named_modules():
        if isinstance(part, PreTrainedModel):
            inner = target.removeprefix(f"{prefix}.") if prefix else target
            if inner in (part._tied_weights_keys or ()):
                return True
    return False


def names_in_files(model: PreTrainedModel, names: Iterable[str]) -> dict[str, str]:
    """For names of a model, the names under which their arrays are saved, if they are others."""
    conversions = get_model_conversion_mapping(model, add_legacy=False)
    reverse = [
        conversion.reverse_transform()
        for conversion in conversions[::-1]
        if not isinstance(conversion, PrefixChange)
    ]
    renamings = [item for item in reverse if isinstance(item, WeightRenaming)]
    saved = {name: apply_renamings(name, renamings) for name in names}
    return {name: other for name, other in saved.items() if other != name}
