# SPDX-License-Identifier: Apache-2.0
"""The options of all functions that take a DAG apart: their defaults and their help, once.

A definition takes them as `**options: Unpack[FlattenOptions]` and hands them to the core, which
knows what they mean. What `help`, `inspect` and an editor show has each of them by name.
(Nothing of the package is imported here: the reference is made from its sources alone.)
"""

import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, get_type_hints

F = TypeVar("F", bound=Callable[..., Any])

# In the order in which signatures have them.
DEFAULTS: dict[str, Any] = {
    "is_leaf": None,
    "none_is_leaf": False,
    "namespace": "",
    "identity": "all",
    "where": None,
}
HELP = {
    "is_leaf": (
        "Asked once per distinct object before it is opened, and once per occurrence of a value. "
        "True keeps the object whole, as a leaf."
    ),
    "none_is_leaf": "True makes None a leaf; otherwise it is a node without children.",
    "namespace": "Classes registered in this namespace are nodes, too.",
    "identity": '"nodes" gives leaves no identity: one that stands in two places is two leaves.',
}


def with_options(definition: F) -> F:
    """Give a definition the signature and the help that have each option by name."""
    function: Any = definition
    signature = expanded(definition)
    function.__signature__ = signature
    function.__doc__ = explained(inspect.getdoc(definition) or "", signature.parameters)
    return definition


def expanded(definition: Callable[..., Any]) -> inspect.Signature:
    """The signature, with `**options` replaced by the options that it stands for."""
    signature = inspect.signature(definition)
    parameters = list(signature.parameters.values())
    options = next((p for p in parameters if p.kind is p.VAR_KEYWORD), None)
    if options is not None:
        parameters.remove(options)
        [typed] = options.annotation.__args__  # of Unpack[...]
        parameters += [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=DEFAULTS[name], annotation=annotation
            )
            for name, annotation in _hints(typed).items()
        ]
    parameters.sort(key=_place)
    return signature.replace(parameters=parameters)


@functools.cache
def _hints(typed: type) -> dict[str, Any]:
    return get_type_hints(typed)


def _place(parameter: inspect.Parameter) -> tuple[int, int]:
    """The sort key of a parameter: options by keyword come last, all others keep their order."""
    is_option = parameter.kind is parameter.KEYWORD_ONLY and parameter.name in DEFAULTS
    return parameter.kind, 1 + list(DEFAULTS).index(parameter.name) if is_option else 0


def explained(text: str, names: Iterable[str]) -> str:
    """A docstring whose `Args:` explain these parameters in order, options in the common words.

    Args:
        text: The docstring, without indentation.
        names: Of the parameters. One that the text explains itself keeps its explanation.
    """
    start, title, rest = text.partition("Args:\n")
    end = re.search(r"^(?=\S)|\Z", rest, re.MULTILINE)
    if not title or end is None:
        return text
    section = rest[: end.start()].rstrip("\n")
    items = re.split(r"^(?=    \w)", section, flags=re.MULTILINE)[1:]
    own = {item.split(":")[0].split(",")[0].strip(): item.rstrip("\n") for item in items}
    ordered = [own.get(name) or _help(name) for name in names if name in own or name in HELP]
    return "".join([start, title, "\n".join(ordered), rest[len(section) :]])


@functools.cache
def _help(name: str) -> str:
    text = f"{name}: {HELP[name]}"
    return textwrap.fill(text, 96, initial_indent="    ", subsequent_indent="        ")
