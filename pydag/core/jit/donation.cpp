// SPDX-License-Identifier: Apache-2.0
#include "jit/donation.h"

#include "base/object_set.h"

namespace pydag {
namespace {

// Notes the leaves at these positions, and apart those that were met before.
void note(PyObject *const *leaves, const std::vector<uint32_t> &positions, ObjectSet &met, ObjectSet &repeated) {
    for (const uint32_t position : positions)
        if (!met.add(leaves[position])) repeated.add(leaves[position]);
}

}  // namespace

nb::object donated_apart(PyObject *const *leaves, const std::vector<uint32_t> &donated,
                         const std::vector<uint32_t> &kept, nb::handle copy) {
    ObjectSet met, repeated;
    note(leaves, kept, met, repeated);
    note(leaves, donated, met, repeated);
    nb::object found = checked(PyTuple_New(static_cast<Py_ssize_t>(donated.size())));
    for (size_t i = 0; i < donated.size(); ++i) {
        nb::object leaf = nb::borrow(leaves[donated[i]]);
        if (!repeated.add(leaf.ptr())) leaf = call(copy, leaf);
        PyTuple_SET_ITEM(found.ptr(), static_cast<Py_ssize_t>(i), leaf.release().ptr());
    }
    return found;
}

void copy_donated(Leaves &leaves, const std::vector<uint32_t> &passed, const std::vector<uint32_t> &donated,
                  nb::handle copy) {
    ObjectSet met, repeated;
    note(leaves.data(), passed, met, repeated);
    for (const uint32_t position : donated)
        if (!repeated.add(leaves[position])) leaves.replace(position, call(copy, nb::handle(leaves[position])));
}

}  // namespace pydag
