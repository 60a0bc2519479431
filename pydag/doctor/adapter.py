# SPDX-License-Identifier: Apache-2.0
"""The adapters of peft: arrays that are added to a base model, which isn't here."""

from .config import CONFIG, read_object
from .finding import Finding, listed, shown
from .heads import is_end
from .model import Model

ADAPTER_CONFIG = "adapter_config.json"


def configure_adapter(model: Model) -> None:
    """Takes a model for an adapter, if there is its configuration beside it.

    A copy of a module that the base model ties unties it. Whether it does isn't known here.
    """
    whole = read_object(model.folder, ADAPTER_CONFIG, model.findings)
    if whole is None:
        return
    keys = ("base_model_name_or_path", "modules_to_save", "ensure_weight_tying")
    base, saved, keeps_ties = map(whole.get, keys)
    model.base = base if type(base) is str else ""
    modules = map(str, saved if type(saved) is list else ())
    own = [module for module in modules if is_end(f"{module}.weight")]
    is_tied = None if model.config is None else model.config.decide()[0]
    model.config, model.config_findings = None, []  # a head that isn't stored is the base model's
    if own and keeps_ties is not True and is_tied is not False:
        name = shown(model.base or "its base model")
        tied = f"{CONFIG} says tied" if is_tied else f"perhaps {name} is tied"
        text = f"{tied}, and the adapter has {listed(own)} of its own, which unties it: see "
        model.findings.append(Finding("doubt", tuple(own), text + "ensure_weight_tying of peft"))
