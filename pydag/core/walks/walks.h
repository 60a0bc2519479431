// SPDX-License-Identifier: Apache-2.0
//
// The walks over a whole tree, in the order in which one needs them:
//
//   Flattened                   takes a tree apart: its leaves and its structure (flatten.h)
//   unflatten                   builds a tree from these
//   copy, deep_copy             build the same tree with new containers, and with new leaves
//   map, for_each               call a function once for each leaf
//   make_iterator               gives one leaf at a time
//   match, match_rest           find what another tree has in the place of each leaf
//   write_leaves, update        write other leaves into the objects of a tree
//   fold, rewrite, intern       compute a result for each object, from the leaves up
//   traverse                    does the same for a structure and new leaves
//   all_paths                   finds all paths to each leaf
//   is_leaf, open_one_level     look at one object alone
#pragma once

#include "nodes/build.h"
#include "walks/flatten.h"

namespace pydag {

// Children are built before their node, and every shared object once. Each call gives fresh objects, and an exception
// in the middle leaves nothing behind.
//
// From an array that owns the leaves meanwhile. An error says that it occurred while `doing`.
nb::object unflatten(const Structure &structure, PyObject *const *leaves, const char *doing = "unflattening");
// From an iterable of leaves; ValueError where there are too few or too many.
nb::object unflatten(const Structure &structure, nb::handle leaves);

// New containers, the same leaves, the same sharing.
nb::object copy(nb::handle tree, const FlattenOptions &options);
// The same without Python code. Null if the tree hasn't the structure that it had last, if a signal waits, or if
// something is wrong. `only_values`: any structure of dicts, lists and tuples, but no leaf that `copy.deepcopy` copies.
nb::object copy_known(nb::handle tree, const FlattenOptions &options, bool only_values);
// New containers and new leaves, but for those that `copy.deepcopy` returns as they are.
// `copier`: `copy.deepcopy`, which gets each leaf that the core can't copy, and a memo that knows the containers.
nb::object deep_copy(nb::handle tree, nb::handle copier, const FlattenOptions &options);

// Calls a function once for each distinct leaf, and replaces the leaves by the results. `rests`: a tuple of trees that
// are matched against `tree`; the function gets their answers behind the leaf. Where a class has an unflatten function,
// the function runs while the result is being built, as optree's does. `select`: for which leaves the function is
// called; the others stay as they are. None: all. A class: its instances, and what lies below such a node. A function:
// `select(leaves, spec)` returns a list of bools, one for each leaf.
enum class Extra { kNone, kPath, kAccessor };  // an argument of the function before the leaf
nb::object map(nb::handle function, nb::handle tree, nb::handle rests, nb::handle select, const FlattenOptions &options,
               Extra extra);
// The same without a result: results of the function are dropped.
void for_each(nb::handle function, nb::handle tree, nb::handle rests, nb::handle select, const FlattenOptions &options,
              Extra extra);

// A Python iterator over the leaves: each comes when it is first reached. The children of a node are taken when it is
// opened, so later changes of the node aren't seen. The iterator owns the objects that it has met, which it knows by
// address. RuntimeError if a callback of its own walk asks it for the next leaf, or if threads would wait for each
// other for ever.
nb::object make_iterator(nb::handle tree, const FlattenOptions &options);
// Makes the type of these iterators, when the module is made.
void make_iterator_type();

// When the classes in a structure were looked up: by this very call, or earlier. In the latter case they may have been
// registered differently since.
enum class ClassesOf { kThisCall, kAnyTime };
// Matches another tree with a structure: fills `found`, empty before, with the object that the tree has for each leaf.
//
// One answer per object: where the structure has a shared object, the other tree must hold one object too, or equal
// values. If it holds the same object at an alias as at the anchor, that costs one comparison; another object is walked
// once for each pair of an anchor and an object. ValueError where the tree doesn't fit, SharingError where it gives one
// shared object two answers. Looks first whether the tree fits as it is (`match_known`). `roots`: the name of the tree
// in messages, except in a SharingError, which is about two trees.
void match(const Structure &structure, PyObject *tree, Leaves &found, ClassesOf classes = ClassesOf::kThisCall,
           const Roots &roots = Roots());
// Matches one of several trees. In messages it is `rests[1]`, unless there is only one.
void match_rest(const Structure &structure, nb::handle rests, Py_ssize_t number, Leaves &found,
                ClassesOf classes = ClassesOf::kThisCall);
// Decides whether a further answer for a leaf goes with its first one; if not, that is a SharingError.
class Answers {
public:
    virtual bool accept(uint32_t leaf, PyObject *first, PyObject *other) = 0;

protected:
    ~Answers() = default;
};
// Matches with the caller's `answers`. The walk along a known structure isn't tried, since it can't call them.
void match(const Structure &structure, PyObject *tree, Leaves &found, Answers &answers, const Roots &roots = Roots());
// Whether two answers for one leaf agree: the same object, or equal values of one type. Tuples, and instances of
// registered classes without identity, are compared part by part. No object's own `__eq__` runs; flatten functions do.
bool is_same_answer(Namespace &space, PyObject *a, PyObject *b);

struct NewLeaves {
    const Structure &structure;  // of the target
    PyObject *const *leaves;     // the new leaf in the place of each; null where the leaf stays
    Namespace &space;
    // Finds the writer of a class that a flatten function opens. Called with the class, it returns a function of the
    // instance and the tuple of its new children, or None if instances can't be written. Null: none can.
    nb::handle writers;
    // Whether the instances of a class must stay as they are, though the core could write their fields: called with the
    // class. Null: all may change.
    nb::handle is_frozen;
    // Whether to write objects of classes that are registered with another library by their fields.
    bool writes_foreign = false;
    Roots roots;  // the names of the target in messages
};
// Writes other leaves into the objects of a tree. All containers stay the same objects, except tuples, which are
// replaced by new ones. All or nothing: everything that may fail is tried before the first write, and if a write fails
// nevertheless, the others are undone.
//
// Fills `objects`, empty before, with the object of the target at each position. ValueError if the target has another
// structure. TypeError if an object would have to change that can't be written.
void write_leaves(nb::handle target, const NewLeaves &given, NodeObjects &objects);
// Replaces each leaf of `target` by the leaf that `source` has for it. `writers` and `is_frozen` as above; None: none.
// TypeError, too, for a root that is a leaf or a tuple; ValueError and SharingError if the trees don't fit.
void update(nb::handle target, nb::handle source, nb::handle writers, nb::handle is_frozen,
            const FlattenOptions &options);

// Calls `function(node, children)` once for each distinct object, where `children` are its results for the children.
// Returns its result for the root. `function` may be a mapping from classes to functions.
//
// The tree is taken apart before the function is called for the first time. So a function that changes an object
// doesn't change the walk, and everything that it may be called with is owned.
nb::object fold(nb::handle function, nb::handle tree, const FlattenOptions &options);
// With information from above: `down(node, context)` gives the context of the node's children, and the root has
// `context`. `function(node, children, context)` is called once for each object and context of its own.
nb::object fold_with_context(nb::handle function, nb::handle tree, nb::handle down, nb::handle context,
                             const FlattenOptions &options);
// Replaces each object by what `function(node)` returns for it, with its parts rewritten; the result is not rewritten
// again. An object in which nothing changed stays the same object. `function` may be a mapping from classes to
// functions; objects of other classes stay. A value that is replaced by an equal one of the same type is unchanged.
nb::object rewrite(nb::handle function, nb::handle tree, const FlattenOptions &options);
// Makes equal parts one object ("hash consing"). Nodes are equal by class, keys in the order in which they were filled
// in, aux_data and children; leaves by identity, values by type and `==`. Of equal nodes the first one stays; it is
// rebuilt only if something below it was merged. If nothing is merged, the same tree comes back.
nb::object intern(nb::handle tree, const FlattenOptions &options);

// What a function is called with for a node: the object, built of the results of its parts; or its class, its data
// (nodes/nodes.h) and a tuple of the results of its parts.
enum class NodeCall { kBuilt, kParts };
// Calls `leaf_function(leaf)` once for each distinct leaf and `node_function` once for each distinct node, and for each
// tuple, after its children; every slot of a shared object gets the result of that object. Without a function (null)
// leaves stay, and nodes are built. Returns the result of the root.
//
// `leaves` is an iterator. A leaf is fetched when it is needed, the next one as soon as the function has returned.
// ValueError if there are too few or too many.
nb::object traverse(const Structure &structure, nb::handle leaves, nb::handle node_function, nb::handle leaf_function,
                    NodeCall how);

// For each leaf a list of all its paths, tuples of entries, in traversal order. There may be exponentially many. Only
// parts that hold leaves are visited, so the cost is proportional to the paths themselves.
nb::object all_paths(const Structure &structure);

// Whether a walk would take the object for a leaf. The predicate is asked first.
bool is_leaf(nb::handle object, const FlattenOptions &options);
// Whether all items of an iterable are leaves; stops at the first item that isn't.
bool are_leaves(nb::handle iterable, const FlattenOptions &options);
// (children, entries, spec) of a node: a list, a tuple, and a structure of one leaf for each child, whatever they
// share.
nb::object open_one_level(nb::handle object, const FlattenOptions &options);

}  // namespace pydag
