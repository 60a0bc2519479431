# SPDX-License-Identifier: Apache-2.0
"""The options that many functions have, their help written once; hints for names that none has.

A definition takes them as `**options: Unpack[FlattenOptions]` and passes them to the core, which
implements them. `help`, `inspect` and editors show each of them by name.
(This module imports nothing of pydag: the reference is made from the sources alone.)
"""

import difflib
import functools
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, NoReturn, TypeVar, get_type_hints

F = TypeVar("F", bound=Callable[..., Any])


class KnownOptions(NamedTuple):
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

OF_CORE = KnownOptions(
    {"is_leaf": None, "none_is_leaf": False, "namespace": "", "identity": "all", "where": None},
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
        "prefix_tree": "The prefix: each of its leaves stands for all that is below its path.",
        "full_tree": "The full tree.",
        "other_tree": (
            "Another tree; where either has a node, the other has such a node or a leaf."
        ),
        "inner_treespec": (
            "The structure of the function's results. Left out: that of the first result, sharing "
            "included."
        ),
        "spec": "The spec.",
        "other_spec": "The other spec.",
        "index": "The index of the slot; a negative one counts from the end.",
        "iterable": "The specs of the children.",
        "mapping": "The specs of the values, by key: a mapping or an iterable of pairs.",
        "kwargs": "More specs, by key.",
    },
)
"""The options of the functions that take a DAG apart."""


def with_options(definition: F, known: KnownOptions = OF_CORE) -> F:
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


def expanded(definition: Callable[..., Any], known: KnownOptions = OF_CORE) -> inspect.Signature:
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


def explained(text: str, names: Iterable[str], known: KnownOptions = OF_CORE) -> str:
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


_JAX = "pydag.jaxinterop"
_OF_TORCH = (
    *("ties", "tie_changes", "keeping_ties", "tie_again", "fsdp_groups", "tied_weights_keys"),
    *("check_tied_weights_keys", "module_tree", "load_module_tree", "module_average"),
)
_INSTEAD = {
    "check": "files are checked by the command `python -m pydag check PATH`",
    "dag_ravel": "integrations.jax, .numpy and .torch have one each",
    "MAX_RECURSION_DEPTH": "only memory bounds the depth of a structure",
    "export": f"give jax.export.export a function of {_JAX}.tree.flatten's leaves",
    "pmap": "write shard_map, or jit with shardings",
    "pytree": "the functions without prefix are in pydag.dag",
    "treespec": "the functions without prefix are in pydag.dagspec",
} | dict.fromkeys(("Dag", "Module", "grad", "jaxinterop", "jit", "vmap"), f"first import {_JAX}")
_INSTEAD |= dict.fromkeys(_OF_TORCH, "it is in pydag.integrations.torch")


def our_name(name: str) -> str:
    """pydag's name for optree's `name`."""
    return re.sub("^PyTree(Spec|Def)", "PyDagSpec", re.sub("^tree|(?<=_py)tree", "dag", name))


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a package of pydag doesn't have, with what to write instead."""
    error = AttributeError(f"module '{module}' has no attribute '{name}'")
    error.name, error.obj = name, sys.modules[module]  # Python proposes names with these
    if name[:1] == "_":
        return error
    packages = ["pydag", _JAX]
    if module == _JAX:
        packages.insert(0, importlib.import_module(f"{_JAX}.tree").__name__)
    for package in packages:
        for near in (our_name(name), f"dag_{name}", re.sub("^(tree|filter)_", "", name).lower()):
            if near in getattr(sys.modules.get(package), "__all__", ()):
                where = "" if package == module == "pydag" else f"{package}."
                return AttributeError(f"{module} has no '{name}'; did you mean '{where}{near}'?")
    cure = _INSTEAD.get(name)
    for place in ("optax", "jax", "jax.lax", "jax.experimental"):
        if module == _JAX and not cure and hasattr(sys.modules.get(place), name):
            cure = f"write {place}.{name}, with {_JAX}.Dag around each tree"
            if place == "optax":
                cure = f"that is optax's\n  Give it to {_JAX}.optimizer(optax.{name}(...))."
    return AttributeError(f"{module} has no '{name}': {cure}") if cure else error


def raise_unexpected(keyword: str) -> NoReturn:
    """Raises Python's TypeError for a keyword that the core, which calls this, doesn't know."""
    frame: Any = sys._getframe(1)
    function: Any = None  # the outermost public function of pydag
    while frame and str(frame.f_globals.get("__package__")).startswith("pydag"):
        if (name := frame.f_code.co_name)[0] != "_":
            function = frame.f_globals.get(name, function)
        frame = frame.f_back
    same = {"where": "wrt", "wrt": "where"}.get(keyword, keyword)
    parameters = inspect.signature(function).parameters if function else ()
    near = difflib.get_close_matches(same, parameters, 1)
    advice = f". Did you mean {near[0]!r}?" if near else ""
    name = f"{function.__name__}() " if function else ""
    raise TypeError(f"{name}got an unexpected keyword argument {keyword!r}{advice}")
