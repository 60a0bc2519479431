# SPDX-License-Identifier: Apache-2.0
"""Code that runs within the core and pulls away what the core stands on.

Each of these programs crashed once, or can crash if the core trusts what it has looked up: so each
runs in an interpreter of its own.
"""

import pytest
from operations import run_apart

JUNK = """
import gc, collections, dataclasses
import pydag
junk = []
def fill():
    gc.collect()
    for size in (40, 200, 500, 1100):
        junk.extend(bytearray(b"x" * size) for _ in range(1000))
"""


def run(source: str) -> str:
    """What a program prints that has `pydag` and `fill()`, which overwrites what was freed."""
    return run_apart(JUNK + source)


def test_key_of_attributes_that_clears_them() -> None:
    """A key in `__dict__` that is equal to a slot's name in hash may do what it wants."""
    source = """
class Base: __slots__ = ("s",)
@pydag.register_fields
class Node(Base): pass
@pydag.register_fields(data_fields=("s", "t"), meta_fields=("m",))
class Named(Base): pass
class Evil:
    def __init__(self, name): self.name = name
    def __hash__(self): return hash(self.name)
    def __eq__(self, other):
        node.__dict__.clear()
        fill()
        return False
asked = lambda x: pydag.dag_leaves(x, lambda _: False)
for cls in (Node, Named):
    for name in ("s", "t", "m"):
        for work in (pydag.dag_leaves, pydag.dag_copy, asked):
            node = cls()
            node.s = node.t = node.m = 1
            for i in range(50): node.__dict__[f"a{i}"] = bytearray(b"y" * 40)
            node.__dict__.pop(name, None)
            node.__dict__[Evil(name)] = 2
            try: work([node, [node]])
            except (AttributeError, TypeError, ValueError): pass
print("done")
"""
    assert run(source) == "done\n"


def test_metaclass_that_says_equal() -> None:
    """A class is found by identity, wherever one is looked up or held against another."""
    source = """
import optree
class Meta(type):
    def __hash__(cls): return 1
    def __eq__(cls, other): return True
class Unhashable(type):
    __hash__ = None
class Wide(metaclass=Meta): __slots__ = tuple(f"s{i}" for i in range(5000))
class Thin(metaclass=Meta): __slots__ = ("x",)
class Other(metaclass=Meta): pass
class Odd(metaclass=Unhashable): pass
pydag.register_fields(Wide)
pydag.register_fields(Wide, namespace="n")
thin = Thin()
thin.x = 1
print(pydag.dag_leaves([thin]) == [thin], pydag.dag_leaves([thin], namespace="n") == [thin])
build = lambda aux, children: Other()
optree.register_pytree_node(Other, lambda o: ((1, 2), None), build, namespace="theirs")
print(pydag.dag_leaves([thin], namespace="theirs") == [thin])
pydag.register_pydag_node(Thin, lambda t: ((t.x,), None), lambda a, c: thin)
print(pydag.dag_leaves([thin]), pydag.dag_copy([thin])[0] is thin)
print(pydag.unregister_pydag_node(Thin).type is Thin)
odd = Odd()
print(pydag.dag_structure([odd, odd]).num_shared, pydag.dag_structure([thin, thin]).num_shared)
class MadeP(collections.namedtuple("P", "a b"), metaclass=Meta): __slots__ = ()
class MadeQ(collections.namedtuple("Q", "c d"), metaclass=Meta): __slots__ = ()
p, q = pydag.dag_structure(MadeP(1, 2)), pydag.dag_structure(MadeQ(1, 2))
print(p == q, pydag.explain(p, q) != "")
try: p.flatten_up_to(MadeQ(1, 2))
except ValueError as error: print(str(error)[:24])
"""
    expected = "True True\nTrue\n[1] True\nTrue\n1 1\nFalse True\nnamedtuple type mismatch\n"
    assert run(source) == expected


def test_what_only_looks_like_a_class() -> None:
    """An object whose `__class__` is `type` is none."""
    source = """
class Fake: __class__ = type
for register in (pydag.register_fields, lambda c: pydag.register_pydag_node(c, list, list)):
    try: register(Fake())
    except TypeError as error: print(str(error)[:17])
"""
    assert run(source) == "Expected a class,\n" * 2


def test_fields_that_are_resolved_twice() -> None:
    """A class that is used while its fields are looked up keeps what was found first."""
    source = """
class Meta(type):
    def __getattribute__(cls, name):
        if name in ("__dataclass_fields__", "a") and hook: hook.pop()()
        return type.__getattribute__(cls, name)
for slots in (True, False):
    hook, specs = [], []
    @pydag.register_fields
    @dataclasses.dataclass(slots=slots)
    class C(metaclass=Meta):
        a: object
        b: object
    both = C.__dict__["__dataclass_fields__"]
    def grow():
        C.__dataclass_fields__ = both
        specs.append(pydag.dag_structure(C(1, 2)))
    node = C(1, 2)
    C.__dataclass_fields__ = {"a": both["a"]}
    hook.append(grow)
    specs.append(pydag.dag_structure(node))
    print(len({str(spec) for spec in specs}), len(specs))
    for spec in specs:
        pydag.dag_unflatten(spec, [[] for _ in range(spec.num_leaves)])
        spec.flatten_up_to(node)
"""
    assert run(source) == "1 2\n1 2\n"


def test_class_that_dies_while_it_is_looked_up() -> None:
    """The lookup may give the object another class, and its own dies but for the core."""
    source = """
class Other: pass
def make():
    class Meta(type):
        def __getattribute__(cls, name):
            if name == "__dataclass_fields__" and armed:
                armed.clear()
                tree[0].__class__ = Other
                pydag.unregister_pydag_node(type.__getattribute__(cls, "__mro__")[0])
                fill()
            return type.__getattribute__(cls, name)
    @dataclasses.dataclass
    class Node(metaclass=Meta):
        a: object
    pydag.register_fields(Node)
    return Node(1)
match = pydag.dag_structure([[1]]).flatten_up_to
for work in (pydag.dag_leaves, pydag.dag_copy, pydag.deref, match):
    armed, tree = [], [make()]
    armed.append(1)
    fill()
    try: work(tree)
    except (ValueError, TypeError, AttributeError): pass
print("done")
"""
    assert run(source) == "done\n"


@pytest.mark.parametrize(
    "answer", ["(children(), None, ('too', 'many'))", "(Children(), None)", "(children(),)"]
)
def test_class_that_dies_before_it_is_named(answer: str) -> None:
    """A message about a flatten function names the class that the object had."""
    source = f"""
class Node: pass
class Children:
    def __iter__(self): return children()
def children():
    node.__class__ = Node
    fill()
    yield 1
def flatten(node):
    node.__class__ = type("Short", (), {{}})
    return {answer}
pydag.register_pydag_node(Node, flatten, lambda a, c: Node())
for _ in range(3):
    node = Node()
    try: print(pydag.dag_flatten([node])[0])
    except RuntimeError as error: print(str(error).splitlines()[0][:40])
"""
    line = "[1]" if "Children" in answer else "PyTree custom flatten function for type "
    assert run(source) == f"{line}\n" * 3


def test_class_that_dies_while_its_instance_is_shown() -> None:
    """What is shown of an object in a message may change the classes that the message names."""
    source = """
class Brief:
    __module__ = "numpy"                         # whose objects are asked for their own text
    def __repr__(self):
        self.__class__ = Other
        fill()
        return "brief"
class Other(Brief): pass
def brief():
    cls = type("Short" * 20, (Brief,), {"__module__": "numpy"})
    return cls()
class Node: pass
@pydag.register_fields(data_fields=("a",))
class Fields: pass
pydag.register_pydag_node(Node, lambda n: ((1,), None), lambda a, c: Node())
fields = Fields()
fields.a = 1
for tree in (Node(), fields, [1], (1,), {"a": 1}, collections.deque([1])):
    for _ in range(3):
        try: pydag.dag_structure([tree]).flatten_up_to([brief()])
        except ValueError: pass
for _ in range(3):
    cyclic = {}
    key = brief()
    holder = type("Holder", (), {"__hash__": lambda self: 1})()
    cyclic[key] = [cyclic]
    try: pydag.dag_leaves(cyclic)
    except pydag.CycleError: pass
print("done")
"""
    assert run(source) == "done\n"


@pytest.mark.parametrize("has_attribute", [True, False])
def test_key_that_an_ordered_dict_lost(has_attribute: bool) -> None:
    """No walk that borrows asks an OrderedDict's iterator, which compares the keys in its links."""
    source = f"""
from collections import OrderedDict
class Evil:
    armed = False
    def __hash__(self): return hash("a")
    def __eq__(self, other):
        if not Evil.armed: return self is other
        tree.clear()
        fill()
        return True
ordered = OrderedDict(a=1, b=2)
key = Evil()
ordered[key] = 0
dict.__delitem__(ordered, key)                       # the links keep the key
for i in range(50): dict.__setitem__(ordered, i, i)
for i in range(50): dict.__delitem__(ordered, i)
if {has_attribute}: ordered.attribute = 1
def make(): return [ordered] + [[i] for i in range(60)]
tree = make()
pydag.dag_leaves([OrderedDict(a=1), 1])              # the classes are known now
Evil.armed = True
print(len(pydag.dag_leaves(tree)))
Evil.armed = False
spec = pydag.dag_structure([OrderedDict(a=1, b=2)] + tree[1:])
works = (pydag.dag_leaves, pydag.dag_copy, spec.flatten_up_to, pydag.deref,
         lambda t: pydag.dag_leaves(t, lambda _: False))
for work in works:
    for _ in range(2):
        Evil.armed, tree = True, make()
        try: work(tree)
        except (KeyError, ValueError): pass
        Evil.armed = False
print("done")
"""
    assert run(source) == "62\ndone\n"


def test_path_entries_that_find_the_accessors() -> None:
    """A class of path entries that empties every list of accessors spoils no map."""
    source = """
import optree
class Entry(optree.GetAttrEntry):
    def __init__(self, *args):
        for found in gc.get_objects():
            if type(found) is list and found and isinstance(found[0], optree.PyTreeAccessor):
                found.clear()
class Node:
    def __init__(self, *c): self.c = c
pydag.register_pydag_node(Node, lambda n: (n.c, None), lambda a, c: Node(*c), path_entry_type=Entry)
tree = [[i] for i in range(300)] + [Node(1, 2)]
out = pydag.dag_map_with_accessor(lambda a, x: len(a), tree)
print(out[:2], out[-1].c, len(pydag.dag_structure(tree).accessors()))
"""
    assert run(source) == "[[2], [2]] (2, 2) 302\n"


def test_keys_that_find_the_dict_of_places() -> None:
    """Keys that find, and falsify, the dict in which they are looked up match nothing."""
    source = """
class Key:
    def __init__(self, name): self.name = name
    def __hash__(self): return hash(self.name)
    def __eq__(self, other):
        if armed:
            for found in gc.get_referrers(self):
                if type(found) is dict and found and type(next(iter(found.values()))) is int:
                    for key in list(found): dict.__setitem__(found, key, wrong)
        return isinstance(other, Key) and self.name == other.name
for wrong in (10**6, -1, "text", 2**70):
    armed = False
    spec = pydag.dag_structure({Key(i): [i] for i in range(20)})
    rest = {Key(i): [i] for i in reversed(range(20))}
    armed = True
    try: spec.flatten_up_to(rest)
    except ValueError as error: print(str(error)[:23])
"""
    assert run(source) == "dictionary key mismatch\n" * 4


def test_keys_that_find_the_list_that_sorts_them() -> None:
    """A metaclass that replaces what is being sorted leaves the keys in insertion order."""
    source = """
class Meta(type):
    @property
    def __module__(cls):
        for found in gc.get_objects():
            if type(found) is list and found and type(found[-1]) is tuple and found[-1][-1] in keys:
                found[:] = [("m.Key",)] * len(found)
        return "m"
class Key(metaclass=Meta): pass
keys = [Key() for _ in range(10)]
print(pydag.dag_leaves({key: i for i, key in enumerate(keys)}) == list(range(10)))
"""
    assert run(source) == "True\n"


def test_parts_of_a_spec_cannot_be_cleared() -> None:
    """Keys, registrations and results are as a tuple is: the collector's clearing leaves them."""
    source = """
import ctypes
get_slot = ctypes.pythonapi.PyType_GetSlot
get_slot.restype, get_slot.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_int)
tp_clear = 51                                    # of CPython's stable ABI
@pydag.register_fields(meta_fields=("m",))
class Node: pass
node = Node()
node.a, node.m = [1], 2
tree = {"b": node, "a": 3}
spec = pydag.dag_structure(tree)
parts = gc.get_referents(spec)
for part in parts:
    if type(part).__name__ in ("Keys", "Registration"):
        clear = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(get_slot(type(part), tp_clear))
        print(type(part).__name__, clear(part))
print(spec, spec.unflatten([1, 2])["b"].a, pydag.dag_leaves(tree), spec.flatten_up_to(tree))
"""
    output = run(source)
    assert sorted(output.splitlines()[:-1]) == ["Keys 0", "Keys 0", "Registration 0"]
    assert output.splitlines()[-1] == "PyDagSpec({'a': *, 'b': Node(a=[*], m=2)}) [2] [3, 1] [3, 1]"
