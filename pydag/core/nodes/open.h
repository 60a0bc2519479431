// SPDX-License-Identifier: Apache-2.0
//
// What each kind of node consists of; build.h is the other half. No other file tells the kinds apart.
//
// There are three ways to the children of an object. `read_known_node` compares it with a node of a structure that it
// probably has. `read_node` finds out what it is. Both run no Python code, so the children that they return may be
// borrowed (see base/held.h); both give up where Python code would have to run. `open_node` runs it.
//
// A container is read in one go: other threads may change it before or after that, not meanwhile.
#pragma once

#include "base/constants.h"
#include "base/error.h"
#include "base/gc_pause.h"
#include "base/same_key.h"
#include "base/threads.h"
#include "nodes/open_options.h"
#include "structure/node_refs.h"
#include "structure/structure.h"
#include "types/keys.h"
#include "types/registry.h"

namespace pydag {

namespace detail {
// CPython's collector visits the links of an OrderedDict in their order. CPython doesn't promise that, so it is
// tried out when the module is imported. If it doesn't hold, walks that run no Python code give up at such dicts.
void try_out_ordered_dicts();
nb::object items_of_deque(PyObject *deque);  // a list
uint32_t open_deque(PyObject *deque, Stack &stack, Refs &refs);
uint32_t open_dict(PyObject *dict, OpenOptions &options, Stack &stack, Refs &refs);
uint32_t open_ordered_dict(PyObject *dict, Stack &stack, Refs &refs);
uint32_t open_custom(PyObject *object, PyObject *registration, const OpenOptions &options, Stack &stack, Refs &refs);
uint32_t open_fields(PyObject *object, PyObject *registration, Stack &stack, Refs &refs);
PyObject **read_custom(PyObject *object, PyObject *registration, OpenOptions &options, Refs &refs, uint32_t &count);
bool read_known_custom(PyObject *object, Node node, PyObject *const *refs, OpenOptions *options, PyObject **values);
nb::object default_factory_of(PyObject *dict);
// Whether an OrderedDict, whose dict has just these keys, has them in this order. False also if only Python code
// could tell the order.
bool is_in_order_of(PyObject *const *keys, size_t count, PyObject *dict);
PyObject **read_mapping(PyObject *dict, bool is_ordered, OpenOptions &options, Refs &refs, uint32_t &count);
PyObject **read_fields(PyObject *object, PyObject *registration, OpenOptions &options, Refs &refs, uint32_t &count);
bool has_default_factory(PyObject *dict, PyObject *expected);
bool read_known_deque(PyObject *deque, PyObject *maxlen, uint32_t count, PyObject **values, HeldBy held);
bool read_known_fields(PyObject *object, PyObject *const *refs, OpenOptions *options, PyObject **values, HeldBy held);
bool copy_known_items(PyObject *list, Py_ssize_t count, PyObject **values, HeldBy held);
PyObject **copy_items(PyObject *list, OpenOptions &options, uint32_t &count);
[[noreturn]] void fail_too_many_children(PyObject *object);

inline uint32_t checked_count(PyObject *object, Py_ssize_t count) {
    if (static_cast<size_t>(count) >= UINT32_MAX) [[unlikely]]
        fail_too_many_children(object);  // GCOVR_EXCL_LINE: as above, no test has the memory
    return static_cast<uint32_t>(count);
}
// Writes the values of a dict into `values`, in traversal order, if it has just these keys in just this insertion
// order. False for any other dict.
template <bool is_ordered = false>
bool read_known_mapping(const Keys &keys, PyObject *dict, PyObject **values, HeldBy held) {
    const uint32_t count = keys.size();
    const Locked locked(dict);
    if (PyDict_GET_SIZE(dict) != static_cast<Py_ssize_t>(count)) return false;
    PyObject *const *const expected = keys.inserted();
    const uint32_t *const ranks = keys.ranks();
    Py_ssize_t position = 0;
    PyObject *key, *value;
    for (uint32_t i = 0; i < count; ++i) {
        if (!PyDict_Next(dict, &position, &key, &value) || !is_same_key(key, expected[i])) [[unlikely]]
            return false;
        values[ranks ? ranks[i] : i] = value;
    }
    if (is_ordered && !is_in_order_of(expected, count, dict)) return false;
    held.keep(values, count);
    return true;
}
// Whether a dict with these keys is traversed in their order.
inline bool has_order_of(const Keys &keys, OpenOptions *options) {
    if (!options || (keys.is_sorted() && keys.in_order)) return true;
    return options->ask_insertion_order() != keys.is_sorted();
}
inline uint32_t push_items(PyObject *const *items, uint32_t count, Stack &stack) {
    if (std::find(items, items + count, nullptr) != items + count) [[unlikely]]
        fail_unfilled();
    PyObject **const slots = stack.extend(count);
    for (uint32_t i = 0; i < count; ++i) slots[count - 1 - i] = incref(items[i]);
    return count;
}
}  // namespace detail

// What the flatten function of a class returns for an instance. The children and the entries are tuples that are
// filled; the entries may be None.
struct FlattenResult {
    nb::object children, aux_data, entries;
};
// Calls the flatten function. The caller owns the object and the registration meanwhile.
FlattenResult ask_function(PyObject *object, PyObject *registration, const OpenOptions &options);

// How an object whose class was looked up is opened, which may differ: see Registration::is_strict.
TypeInfo as_opened(PyObject *object, TypeInfo info);
// The same; looks the class up, which may run Python code on first sight of it. The caller owns the object. The result
// holds until Python code runs.
inline TypeInfo find_opened(PyObject *object, Namespace &space) {
    return as_opened(object, space.find_class_of(object));
}

// The children of `object`, in the order of the structure, if it is what the node says: of this kind and size,
// and with these very references. They stand in the object itself, or else in `values`, where there is room for
// them. Null if it is anything else, and where only Python code could tell. They are borrowed, and hold until Python
// code runs; the caller keeps a GcPause. `options` is null where the structure alone says how dicts are ordered.
[[gnu::always_inline]] inline PyObject *const *read_known_node(Node node, PyObject *const *refs, PyObject *object,
                                                               OpenOptions *options, PyObject **values, HeldBy held) {
    using namespace detail;
    PyTypeObject *const type = Py_TYPE(object);
    const auto count = static_cast<Py_ssize_t>(node.count);
    switch (node.kind) {
        case Kind::kLeaf:  // GCOVR_EXCL_START: nobody opens these
        case Kind::kAlias:
            return nullptr;
        // GCOVR_EXCL_STOP
        case Kind::kCustom:
            return read_known_custom(object, node, refs, options, values) ? values : nullptr;
        case Kind::kNone:
            return object == Py_None ? values : nullptr;
        case Kind::kTuple:
            return type == &PyTuple_Type && PyTuple_GET_SIZE(object) == count ? &PyTuple_GET_ITEM(object, 0) : nullptr;
        case Kind::kNamedTuple:
        case Kind::kStructSequence: {
            const bool fits =
                reinterpret_cast<PyObject *>(type) == TupleClassRefs{refs}.type() && PyTuple_GET_SIZE(object) == count;
            return fits ? &PyTuple_GET_ITEM(object, 0) : nullptr;
        }
        case Kind::kList:
            if (type != &PyList_Type || PyList_GET_SIZE(object) != count) return nullptr;
            if (count == 0) return values;
            if constexpr (kFreeThreaded) return copy_known_items(object, count, values, held) ? values : nullptr;
            else return reinterpret_cast<PyListObject *>(object)->ob_item;
        case Kind::kDict:
        case Kind::kFrozenDict: {
            const Keys &keys = MappingRefs{refs}.keys();
            PyTypeObject *const expected = node.kind == Kind::kDict ? &PyDict_Type : constants.frozen_dict;
            const bool fits =
                type == expected && has_order_of(keys, options) && read_known_mapping(keys, object, values, held);
            return fits ? values : nullptr;
        }
        case Kind::kOrderedDict: {
            const Keys &keys = MappingRefs{refs}.keys();
            const bool fits = type == &PyODict_Type && keys.in_order && keys.has_only_strings &&
                              read_known_mapping<true>(keys, object, values, held);
            return fits ? values : nullptr;
        }
        case Kind::kDefaultDict: {
            const Keys &keys = MappingRefs{refs}.keys();
            const bool fits = type == constants.default_dict && has_order_of(keys, options) &&
                              read_known_mapping(keys, object, values, held) &&
                              has_default_factory(object, MappingRefs{refs}.default_factory());
            return fits ? values : nullptr;
        }
        case Kind::kDeque:
            if (type != constants.deque) return nullptr;
            return read_known_deque(object, DequeRefs{refs}.maxlen(), node.count, values, held) ? values : nullptr;
        case Kind::kFields:
            return read_known_fields(object, refs, options, values, held) ? values : nullptr;
    }
    return nullptr;  // GCOVR_EXCL_LINE: there is no other kind
}

// The children of `object`, as above; what the structure must remember of it is pushed to `refs`,
// and `count` is how many there are. Null, with `refs` as before, where Python code has to run.
inline PyObject *const *read_node(PyObject *object, const TypeInfo &info, OpenOptions &options, Refs &refs,
                                  uint32_t &count) {
    using namespace detail;
    switch (info.kind) {
        case Kind::kLeaf:
        case Kind::kAlias:
        case Kind::kNone:
        case Kind::kDeque:
            return nullptr;
        case Kind::kCustom:
            return read_custom(object, info.registration, options, refs, count);
        case Kind::kNamedTuple:
        case Kind::kStructSequence:
            refs.push_borrowed(reinterpret_cast<PyObject *>(Py_TYPE(object)));
            [[fallthrough]];
        case Kind::kTuple:
            count = checked_count(object, PyTuple_GET_SIZE(object));
            return &PyTuple_GET_ITEM(object, 0);
        case Kind::kList:
            if constexpr (kFreeThreaded) return copy_items(object, options, count);
            count = checked_count(object, PyList_GET_SIZE(object));
            return count ? reinterpret_cast<PyListObject *>(object)->ob_item : options.arena.take(0);
        case Kind::kDict:
        case Kind::kOrderedDict:
        case Kind::kDefaultDict:
        case Kind::kFrozenDict: {
            PyObject **const values = read_mapping(object, info.kind == Kind::kOrderedDict, options, refs, count);
            if (values && info.kind == Kind::kDefaultDict) refs.push_new(default_factory_of(object));
            return values;
        }
        case Kind::kFields:
            return read_fields(object, info.registration, options, refs, count);
    }
    return nullptr;  // GCOVR_EXCL_LINE: there is no other kind
}

// Pushes the children of `object` on `stack`, which owns them, the last one first, so that a walk
// pops them in order; and what the structure must remember of it to `refs`. Returns the number of
// children. All are taken at once: what a callback does to the container later does not change what
// the walk will see. The caller owns `object` meanwhile.
inline uint32_t open_node(PyObject *object, const TypeInfo &info, OpenOptions &options, Stack &stack, Refs &refs) {
    using namespace detail;
    {
        const GcPause pause;
        uint32_t count = 0;
        if (PyObject *const *const children = read_node(object, info, options, refs, count)) {
            push_items(children, count, stack);
            options.held.release();
            return count;
        }
    }
    switch (info.kind) {
        case Kind::kDict:
        case Kind::kFrozenDict:
            return open_dict(object, options, stack, refs);
        case Kind::kDefaultDict: {
            nb::object factory = default_factory_of(object);
            const uint32_t count = open_dict(object, options, stack, refs);
            refs.push_new(std::move(factory));
            return count;
        }
        case Kind::kOrderedDict:
            return open_ordered_dict(object, stack, refs);
        case Kind::kDeque:
            return open_deque(object, stack, refs);
        case Kind::kCustom:
            return open_custom(object, info.registration, options, stack, refs);
        case Kind::kFields:
            return open_fields(object, info.registration, stack, refs);
        default:
            return 0;
    }
}

}  // namespace pydag
