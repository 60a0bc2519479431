// SPDX-License-Identifier: Apache-2.0
//
// Compares two objects by what they are made of, without running Python code.
#pragma once

#include "base/buffer.h"
#include "types/fields.h"

#include <structmember.h>

#include <algorithm>

namespace pydag {

using Objects = Buffer<PyObject *, 16>;

inline void add_items(PyObject *dict, Objects &parts) {
    Py_ssize_t position = 0;
    for (PyObject *key, *value; PyDict_Next(dict, &position, &key, &value);) parts.push(key), parts.push(value);
}

// What an instance of a class with a plain layout consists of.
inline void add_all_parts(PyObject *object, Objects &parts) {
    for (PyTypeObject *type = Py_TYPE(object); type && is_heap_type(type); type = type->tp_base)
        for (const PyMemberDef *member = type->tp_members; member && member->name; ++member)
            parts.push(read_slot(object, member->offset));
    if (const nb::object dict = instance_dict(object); dict.is_valid()) add_items(dict.ptr(), parts);
}

// Whether two objects are the same or equal names, or, down to this depth, are made of such objects. False if that
// can't be told without running Python code.
inline bool are_alike(PyObject *a, PyObject *b, int depth) {
    if (a == b) return true;
    if (a && b && is_exact_str(a) && is_exact_str(b)) return PyUnicode_Compare(a, b) == 0;
    if (!a || !b || depth == 0 || Py_TYPE(a) != Py_TYPE(b) || !has_plain_layout(as_object(Py_TYPE(a)))) return false;
    Objects parts, others;
    add_all_parts(a, parts), add_all_parts(b, others);
    const auto are_alike_below = [=](PyObject *x, PyObject *y) { return are_alike(x, y, depth - 1); };
    return std::equal(parts.data(), parts.data() + parts.size(), others.data(), others.data() + others.size(),
                      are_alike_below);
}

}  // namespace pydag
