// SPDX-License-Identifier: Apache-2.0
//
// Opens a node: what each kind of node consists of. The other half, how to build one again, is
// build.cpp; no other file tells the kinds apart.
//
// Children are pushed on a stack that owns them, the last one first, so that a walk pops them in
// order. Opening takes all of them at once: what a callback does to the container later does not
// change what the walk will see.
#pragma once

#include "keys.h"
#include "record.h"
#include "registry.h"

namespace pydag {

using Stack = RefBuffer<192>;

struct OpenOptions {
    Namespace *space;
    // -1 until a dict needs to know: whether dicts keep their insertion order here.
    int insertion_ordered = -1;
    bool is_insertion_ordered() {
        if (insertion_ordered < 0) insertion_ordered = space->is_dict_insertion_ordered();
        return insertion_ordered != 0;
    }
};

namespace detail {
uint32_t open_deque(PyObject *deque, Stack &stack, RefLog &refs);
bool push_if_keys_are(const Keys &keys, PyObject *dict, Stack &stack);
uint32_t open_dict(PyObject *dict, OpenOptions &options, Stack &stack, RefLog &refs);
uint32_t open_ordered_dict(PyObject *dict, Stack &stack, RefLog &refs);
uint32_t open_custom(PyObject *object, PyObject *registration, Stack &stack, RefLog &refs);
uint32_t open_fields(PyObject *object, PyObject *registration, Stack &stack, RefLog &refs);
nb::object default_factory_of(PyObject *dict);
void fail_too_many_children(PyObject *object);

inline uint32_t checked_count(PyObject *object, Py_ssize_t count) {
    if (static_cast<size_t>(count) >= UINT32_MAX) [[unlikely]]
        fail_too_many_children(object);
    return static_cast<uint32_t>(count);
}
inline uint32_t push_items(PyObject *object, PyObject *const *items, Py_ssize_t size, Stack &stack) {
    const uint32_t count = checked_count(object, size);
    PyObject **const slots = stack.extend(count);
    for (uint32_t i = 0; i < count; ++i) slots[count - 1 - i] = incref(items[i]);
    return count;
}
}  // namespace detail

// Pushes the children of `object` on `stack` and what the structure must remember of it to `refs`;
// returns the number of children. The caller owns `object` and `info.registration` meanwhile.
inline uint32_t open_node(PyObject *object, const TypeInfo &info, OpenOptions &options, Stack &stack, RefLog &refs) {
    using namespace detail;
    switch (info.kind) {
        case Kind::kLeaf:
        case Kind::kAlias:
        case Kind::kNone:
            return 0;
        case Kind::kNamedTuple:
        case Kind::kStructSequence:
            refs.add(reinterpret_cast<PyObject *>(Py_TYPE(object)));
            [[fallthrough]];
        case Kind::kTuple:
            return push_items(object, &PyTuple_GET_ITEM(object, 0), PyTuple_GET_SIZE(object), stack);
        case Kind::kList:
            return push_items(object, reinterpret_cast<PyListObject *>(object)->ob_item, PyList_GET_SIZE(object),
                              stack);
        case Kind::kDict:
            // A walk that follows a structure has found a dict there too: its keys come next.
            if (PyObject *const expected = refs.expected()) {
                const Keys &keys = KeysBox::of(expected);
                const bool may_fit = keys.is_sorted && (keys.in_order() || options.insertion_ordered == 0);
                if (may_fit && push_if_keys_are(keys, object, stack)) [[likely]] {
                    refs.confirm();
                    return keys.count;
                }
            }
            return open_dict(object, options, stack, refs);
        case Kind::kDefaultDict: {
            nb::object factory = default_factory_of(object);
            const uint32_t count = open_dict(object, options, stack, refs);
            refs.add_new(std::move(factory));
            return count;
        }
        case Kind::kOrderedDict:
            return open_ordered_dict(object, stack, refs);
        case Kind::kDeque:
            return open_deque(object, stack, refs);
        case Kind::kCustom:
            return open_custom(object, info.registration, stack, refs);
        case Kind::kFields:
            return open_fields(object, info.registration, stack, refs);
    }
    return 0;
}

// Whether an object that only this container holds can be met only once, given that the container
// itself is opened only once.
inline bool owns_its_slots(Kind kind, PyObject *container) {
    switch (kind) {
        case Kind::kDict:
        case Kind::kOrderedDict:
        case Kind::kDefaultDict:
        case Kind::kTuple:
        case Kind::kNamedTuple:
        case Kind::kStructSequence:
            // A dict may be the attributes of an instance, which is then a second way to its
            // values. A tuple that somebody else holds may be reached, and opened, again.
            return has_references(container, 2);
        case Kind::kList:
        case Kind::kDeque:
            return true;
        default:
            return false;  // attributes and callbacks' children may be reached in other ways
    }
}

}  // namespace pydag
