# SPDX-License-Identifier: Apache-2.0
"""The options that many functions have: their defaults and their help, written once.

A definition takes them as `**options: Unpack[FlattenOptions]` and passes them to the core, which
implements them. `help`, `inspect` and editors show each of them by name.
(This module imports nothing of pydag: the reference is made from the sources alone.)
"""

import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar, get_type_hints

F = TypeVar("F", bound=Callable[..., Any])


class Options(NamedTuple):
    """The options of some functions, by name.

    Args:
        defaults: The default of each option, in the order of signatures.
        help: Also has parameters that are no options. One text may explain several, `"a, b"`.
    """

    defaults: dict[str, Any]
    help: dict[str, str]


_WHERE = (
    "Which leaves: a predicate of the leaf; a class or a tuple of classes, for leaves that "
    "are instances and all that lies below nodes that are; a pattern of the path, such as "
    '`"layers[*].bias"`, in which `*` stands for anything and `?` for one character; a '
    "tree prefix of booleans; or a list of such, for any of them. Of a shared leaf any "
    "path counts."
)

OF_CORE = Options(
    {
        "is_leaf": None,
        "none_is_leaf": False,
        "namespace": "",
        "identity": "all",
        "where": None,
    },
    {
        "tree": "The DAG.",
        "is_leaf": (
            "Asked once per distinct object before it is opened, and once per occurrence of a "
            "value. True keeps the object whole, as a leaf."
        ),
        "none_is_leaf": "True makes None a leaf; otherwise it is a node without children.",
        "namespace": "Classes registered in this namespace are nodes, too.",
        "identity": (
            '"nodes" gives leaves no identity: one that stands in two places is two leaves.'
        ),
        "rests": (
            "Trees with at least the structure of `tree`, which give each of its shared objects "
            "one answer: the same object at every path, or equal values."
        ),
        "where": _WHERE,
        "predicate": _WHERE,
    },
)
"""The options of the functions that take a DAG apart."""


def with_options(definition: F, known: Options = OF_CORE) -> F:
    """Give a definition a signature and a help text that list each option by name.

    Args:
        definition: A function, or a class whose help describes its parameters.
    """
    thing: Any = definition
    signature = expanded(definition, known)
    if not isinstance(thing, type):
        thing.__signature__ = signature
    thing.__doc__ = explained(inspect.getdoc(definition) or "", signature.parameters, known)
    return definition


def expanded(definition: Callable[..., Any], known: Options = OF_CORE) -> inspect.Signature:
    """The signature, with `**options` replaced by the options that it stands for."""
    signature = inspect.signature(definition)
    parameters = list(signature.parameters.values())
    options = next((p for p in parameters if p.kind is p.VAR_KEYWORD), None)
    typed = getattr(getattr(options, "annotation", None), "__args__", ())  # of Unpack[...]
    if options is not None and typed:
        parameters.remove(options)
        kind, defaults = inspect.Parameter.KEYWORD_ONLY, known.defaults
        parameters += [
            inspect.Parameter(name, kind, default=defaults[name], annotation=annotation)
            for name, annotation in _hints(typed[0]).items()
        ]
    order = {name: 1 + i for i, name in enumerate(known.defaults)}
    # Options by keyword come last, all others keep their order.
    parameters.sort(key=lambda p: (p.kind, order.get(p.name, 0) * (p.kind is p.KEYWORD_ONLY)))
    return signature.replace(parameters=parameters)


@functools.cache
def _hints(typed: type) -> dict[str, Any]:
    return get_type_hints(typed)


# The explanations of the parameters; or, if there are none, the place for them.
_ARGS = re.compile(
    r"^Args:\n((?: .*\n|\n)*)|(?=^(?:Returns|Raises|Warns):\n|^>>> )|\Z", re.MULTILINE
)


def explained(text: str, names: Iterable[str], known: Options = OF_CORE) -> str:
    """A docstring whose `Args:` explain these parameters in order, options by the common text.

    Args:
        text: The docstring, without indentation.
        names: The parameters. An explanation that the text has is kept; one that begins with `...`
            continues the common text.
    """
    found = _ARGS.search(f"{text}\n")
    assert found is not None
    items = re.split(r"^(?=    \w)", found[1] or "", flags=re.MULTILINE)[1:]
    texts = {_first(item): item.rstrip("\n") for item in items}
    common = {_first(title): f"{title}: {words}" for title, words in known.help.items()}
    for name in common.keys() & texts.keys():
        if (more := texts[name].removeprefix(f"    {name}: ...")) != texts[name]:
            texts[name] = _filled(common[name] + " " + " ".join(more.split()))
    ordered = [
        texts[name] if name in texts else _filled(common[name])
        for name in names
        if name in texts or name in common
    ]
    if not ordered:
        return text
    before, after = text[: found.start()].rstrip(), text[found.end() :]
    return "\n".join([before, "", "Args:", *ordered, "", after]).rstrip()


def _first(item: str) -> str:
    """The first name of an explanation."""
    return item.split(":")[0].split(",")[0].strip()


@functools.cache
def _filled(text: str) -> str:
    return textwrap.fill(text, 96, initial_indent="    ", subsequent_indent="        ")
