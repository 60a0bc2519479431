# SPDX-License-Identifier: Apache-2.0
"""What `help()` and an editor show: each parameter of each public function, explained."""

import importlib
import importlib.util
import inspect
import pydoc
import re
from typing import Any, get_origin

import pytest

import pydag
from pydag.public.options import OF_CORE

PACKAGES = ["pydag", "pydag.files", "pydag.integrations.numpy", "pydag.jaxinterop"]
if importlib.util.find_spec("jax") is None:
    PACKAGES.remove("pydag.jaxinterop")
if importlib.util.find_spec("torch") is not None:
    PACKAGES.append("pydag.integrations.torch")


def is_optrees(thing: Any) -> bool:
    """Whether optree explains it."""
    return (getattr(thing, "__module__", None) or "").startswith("optree")


def callables() -> dict[str, Any]:
    """All that is public and can be called, by name, with the methods of the classes."""
    found: dict[str, Any] = {}
    for package in map(importlib.import_module, PACKAGES):
        for name in package.__all__:
            thing = getattr(package, name)
            if inspect.ismodule(thing):
                inner = {name: getattr(thing, name) for name in thing.__all__}
                found |= {
                    f"{thing.__name__}.{name}": function
                    for name, function in inner.items()
                    if inspect.isfunction(function) and not is_optrees(function)
                }
                continue
            if not callable(thing) or get_origin(thing) is not None or is_optrees(thing):
                continue
            found[f"{package.__name__}.{name}"] = thing
            if isinstance(thing, type):
                found |= {
                    f"{package.__name__}.{name}.{attribute}": method
                    for attribute, method in vars(thing).items()
                    if inspect.isfunction(method) and not attribute.startswith("_")
                }
    return found


CALLABLES = callables()


def parameters(thing: Any) -> list[str]:
    """The names of the parameters that a caller gives."""
    if isinstance(thing, type) and issubclass(thing, (Exception, pydag.PyDagSpec, pydag.View)):
        return []  # not made by calling them
    names = list(inspect.signature(thing).parameters)
    return names[1:] if names[:1] == ["self"] else names


def explained(thing: Any) -> dict[str, str]:
    """What the docstring says about each parameter, by name."""
    text = inspect.getdoc(thing) or ""
    [arguments] = re.findall(r"^Args:\n((?:^    .*\n|^$\n)+)", text + "\n", re.MULTILINE) or [""]
    items = re.findall(r"^    (\w+(?:, \w+)*): (.*(?:\n     .*)*)", arguments, re.MULTILINE)
    return {
        name: re.sub(r"\s+", " ", words) for names, words in items for name in names.split(", ")
    }


@pytest.mark.parametrize("name", CALLABLES)
def test_every_parameter_is_explained(name: str) -> None:
    """The docstring of a public function names its parameters, all and no others, in order."""
    thing = CALLABLES[name]
    assert inspect.getdoc(thing)
    words, wanted = explained(thing), parameters(thing)
    assert words.keys() == set(wanted)
    # `args, kwargs` go together, wherever the keywords in between stand.
    assert [x for x in words if x != "kwargs"] == [x for x in wanted if x != "kwargs"]


BOUNDARY = {
    "namespace": "Not JAX's. Classes registered in this namespace are nodes, too.",
    "identity": "Not JAX's. \"nodes\": only containers and modules have identity, arrays don't.",
}
CORE = {name: OF_CORE.help[name] for name in ("is_leaf", "none_is_leaf", "namespace", "identity")}


@pytest.mark.parametrize("name", CALLABLES)
def test_an_option_is_explained_in_the_same_words_everywhere(name: str) -> None:
    """What all functions take that flatten has one text, to which each may add something."""
    thing = CALLABLES[name]
    words = explained(thing)
    if "identity" not in words or thing.__name__ == "reduce_associative":  # there it is a value
        return
    texts = BOUNDARY if thing.__module__.startswith("pydag.jaxinterop") else CORE
    for option in texts.keys() & words.keys():
        assert words[option].startswith(texts[option])


def test_help_on_the_package_lists_its_functions() -> None:
    """`help(pydag)` shows every public function, and where to begin."""
    text = pydoc.TextDoc().document(pydag)
    for name in vars(pydag)["__all__"]:
        assert re.sub(".", lambda c: f"{c[0]}\b{c[0]}", name) in text  # in bold
    assert "To take apart and put together" in text
