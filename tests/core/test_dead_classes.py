# SPDX-License-Identifier: Apache-2.0
"""A class that is gone, and another one that has its address.

From Python 3.14 on the collector clears weak references that finalizers made without calling back.
So the programs here use a class in a finalizer that runs when the class itself is garbage.
"""

import pytest
from operations import run_apart

COMMON = """
import gc, weakref
from collections import namedtuple
import pydag

class Holder:
    def __init__(self, use, tree): self.use, self.tree, self.me = use, tree, self
    def __del__(self): self.use(self.tree)

def by_finalizer(cls, use, tree):
    cls.holder = Holder(use, tree)

def by_generator(cls, use, tree):
    def wait():
        try: yield
        finally: use(tree)
    cls.waiting = wait()
    next(cls.waiting)

class Plain: pass
class Number(int): pass
plain = lambda: type("Plain", (), {})
named = lambda: namedtuple("Named", "x y")
number = lambda: type("Number", (int,), {})
def fields():
    cls = type("Fields", (), {})
    pydag.register_fields(cls)
    return cls
def instance(cls):
    return cls(1, 2) if issubclass(cls, tuple) else cls()
def expected(cls, made):
    return [1, 2] if issubclass(cls, tuple) else [made]
"""

# Whether a class that came after one that is gone was opened as it should be, and how often it
# had that one's address.
LOOP = """
wrong = same = 0
def use(tree):
    for _ in range({times}): pydag.dag_leaves(tree)
for _ in range({rounds}):
    cls = {before}()
    address = id(cls)
    {end}(cls, use, [instance(cls)])
    del cls
    gc.collect()
    after = [{after}() for _ in range(3)]
    for cls in after:
        same += id(cls) == address
        made = instance(cls)
        found = pydag.dag_leaves([made])
        wrong += [id(x) for x in found] != [id(x) for x in expected(cls, made)]
    del cls, after, made, found
    gc.collect()
print(wrong, same)
"""


def run(before: str, after: str, end: str = "by_finalizer", times: int = 1) -> tuple[int, int]:
    """How many instances were opened wrongly; how many of their classes had a dead one's place."""
    loop = LOOP.format(before=before, after=after, end=end, times=times, rounds=60)
    wrong, same = map(int, run_apart(COMMON + loop).split())
    return wrong, same


@pytest.mark.parametrize("end", ["by_finalizer", "by_generator"])
@pytest.mark.parametrize("after", ["plain", "named", "number"])
@pytest.mark.parametrize("before", ["plain", "named", "number"])
def test_address_of_a_class_that_was_last_used_by_a_finalizer(
    before: str, after: str, end: str
) -> None:
    """What a finalizer has the core find out about a dying class is not taken for the next one."""
    assert run(before, after, end)[0] == 0


@pytest.mark.parametrize("after", ["plain", "named"])
def test_structure_that_a_finalizer_left_behind(after: str) -> None:
    """A structure that was kept for a dead namedtuple class is not used again, nor is the class."""
    assert run("named", after, times=4)[0] == 0


def test_kept_structure_of_a_dead_class() -> None:
    """Looking into the cache touches no class that is gone, whatever its memory is used for."""
    source = COMMON + (
        "def use(tree):\n"
        "    for _ in range(4): pydag.dag_leaves(tree)\n"
        "for _ in range(60):\n"
        "    cls = named()\n"
        "    by_finalizer(cls, use, [instance(cls)])\n"
        "    del cls\n"
        "    gc.collect()\n"
        "    junk = [bytearray(b'\\xff' * 1500) for _ in range(60)]\n"
        "    for _ in range(4):\n"
        "        for tree in ([(1, 2)], [[1]], [None]): pydag.dag_leaves(tree)\n"
        "print('survived')\n"
    )
    assert run_apart(source) == "survived\n"


def test_hash_of_a_dead_class_is_not_the_next_ones() -> None:
    """The hash of a class's name is not kept for the class that has its address next."""
    source = COMMON + (
        "def use(tree): hash(pydag.dag_structure(tree))\n"
        "hashes = set()\n"
        "for i in range(60):\n"
        "    cls = named()\n"
        "    by_finalizer(cls, use, [instance(cls)])\n"
        "    del cls\n"
        "    gc.collect()\n"
        "    cls = namedtuple(f'Other{i}', 'x y')\n"
        "    hashes.add(hash(pydag.dag_structure([instance(cls)])))\n"
        "    del cls\n"
        "    gc.collect()\n"
        "print(len(hashes))\n"
    )
    assert run_apart(source) == "60\n"


def test_class_that_dies_while_another_one_is_looked_up() -> None:
    """A walk goes on where the lookup of a class ends another one, whose address is taken."""
    source = COMMON + (
        "class Meta(type):\n"
        "    def __getattribute__(cls, name):\n"
        "        if name == '_fields':\n"
        "            doomed.clear(); gc.collect(); after.append(named())\n"
        "        return type.__getattribute__(cls, name)\n"
        "for _ in range(100):\n"
        "    doomed, after = [plain()], []\n"
        "    by_finalizer(doomed[0], pydag.dag_leaves, [doomed[0]()])\n"
        "    asks = Meta('Asks', (tuple,), {})()\n"
        "    assert pydag.dag_leaves([asks]) == [asks]\n"
        "    assert pydag.dag_leaves([instance(cls) for cls in after]) == [1, 2] * len(after)\n"
        "print('done')\n"
    )
    assert run_apart(source) == "done\n"


def test_dying_classes_are_forgotten() -> None:
    """What is known of classes that went without a word takes bounded memory."""
    source = COMMON + (
        "import sys\n"
        "def live(rounds):\n"
        "    for _ in range(rounds):\n"
        "        classes = [plain() for _ in range(50)]\n"
        "        for cls in classes: by_finalizer(cls, pydag.dag_leaves, [cls()])\n"
        "        del cls, classes\n"
        "        gc.collect()\n"
        "live(40)\n"
        "before = sys.getallocatedblocks()\n"
        "live(200)\n"
        "print(sys.getallocatedblocks() - before)\n"
    )
    assert int(run_apart(source)) < 2000
