# SPDX-License-Identifier: Apache-2.0
"""Write pydag/doctor/known_ties.json, the table of what is tied in the models of transformers.

    cd .ci; python -m known_ties [NAME ...]

With names it shows what it finds for these classes, and writes nothing.

For each class a few models are built without numbers, with configs that say tied and untied in
various places. What the class declares and what is one array in such a model is a fact. Where no
model can be built, as it needs another library or the config has no good defaults, the class is
read.
"""

import gc
import os
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import transformers
from transformers import PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from . import models
from .facts import Facts, facts_of
from .table import text

TABLE = Path(__file__).parents[2] / "pydag" / "doctor" / "known_ties.json"


def defaults(classes: Iterable[type[PreTrainedModel]]) -> dict[str, dict[str, bool]]:
    """For each `model_type`, whether its config is tied at a place that it leaves out."""
    config_classes = (model_class.config_class for model_class in classes)
    configs = {of.model_type: of for of in config_classes if of.model_type}
    configs |= {model_type: CONFIG_MAPPING[model_type] for model_type in CONFIG_MAPPING}
    found = {}
    for model_type, config_class in configs.items():
        try:
            config = config_class()
        except Exception as error:  # some can't be made without the configs of their parts
            print(f"{model_type} has no default: {type(error).__name__}")
            continue
        values = {
            f"{prefix}{models.TIED}": getattr(part, models.TIED, None)
            for prefix, part in models.parts_of(config)
        }
        if rows := {place: value for place, value in values.items() if type(value) is bool}:
            found[model_type] = rows
    return found


def main() -> None:
    """Build, count and write."""
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    models.torch.set_num_threads(1)
    classes = models.architectures()
    facts: dict[str, Facts] = {}
    for number, name in enumerate(sys.argv[1:] or sorted(classes)):
        facts[name] = facts_of(name, classes[name])
        if sys.argv[1:]:
            print(name, facts[name])
        elif number % 100 == 99:
            gc.collect()
            print(f"{number + 1} of {len(classes)} classes", file=sys.stderr, flush=True)
    if not sys.argv[1:]:
        write(facts, defaults(classes.values()))


def write(facts: dict[str, Facts], of_types: dict[str, dict[str, bool]]) -> None:
    """Write the table, and show what is in it."""
    written = text(transformers.__version__, facts, of_types)
    TABLE.write_text(written, "utf-8")
    tied = [row for row in facts.values() if row.ties or row.others]
    tops = [row[models.TIED] for row in of_types.values() if models.TIED in row]
    print(
        f"{len(facts)} classes, of which {sum(row.is_built for row in facts.values())} were built"
    )
    print(f"{len(tied)} tie something, {sum(not row.places for row in tied)} of them always")
    print(f"{sum(not row.is_built for row in tied)} of these were read, and not built")
    print(f"{len({(row.ties, row.others) for row in tied})} distinct groups of ties")
    print(f"{len(tops)} defaults, of which {sum(tops)} are tied; {len(written)} bytes")


if __name__ == "__main__":
    main()
