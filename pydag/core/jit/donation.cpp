// SPDX-License-Identifier: Apache-2.0
#include "jit/donation.h"

#include "base/object_set.h"

#include <algorithm>

namespace pydag {

nb::object donated_apart(PyObject *const *leaves, const std::vector<uint32_t> &donated,
                         const std::vector<uint32_t> &kept, nb::handle copy) {
    ObjectSet met;
    for (const uint32_t position : kept) met.add(leaves[position]);
    std::vector<bool> is_new;
    for (const uint32_t position : donated) is_new.push_back(met.add(leaves[position]));
    nb::object found = checked(PyTuple_New(static_cast<Py_ssize_t>(donated.size())));
    for (size_t i = 0; i < donated.size(); ++i) {
        nb::object leaf = nb::borrow(leaves[donated[i]]);
        if (!is_new[i]) leaf = call(copy, leaf);
        PyTuple_SET_ITEM(found.ptr(), static_cast<Py_ssize_t>(i), leaf.release().ptr());
    }
    return found;
}

void copy_donated(Leaves &leaves, const std::vector<uint32_t> &passed, const std::vector<uint32_t> &donated,
                  nb::handle copy) {
    ObjectSet met;
    for (const uint32_t position : passed)
        if (!std::binary_search(donated.begin(), donated.end(), position)) met.add(leaves[position]);
    for (const uint32_t position : donated)
        if (!met.add(leaves[position])) leaves.replace(position, call(copy, nb::handle(leaves[position])));
}

}  // namespace pydag
