// SPDX-License-Identifier: Apache-2.0
#include "jit/ref_contents.h"

#include "base/constants.h"
#include "base/error.h"
#include "base/tuples.h"

namespace pydag {
namespace {

nb::object attribute(nb::handle object, PyObject *name) { return checked(PyObject_GetAttr(object.ptr(), name)); }

// Whether the type that JAX has for a ref is ordinary.
bool is_ordinary(nb::handle type) {
    return attribute(type, constants.kind).is_none() && attribute(type, constants.memory_space).is_none();
}

// Null for a content that isn't ordinary: it is no array of JAX's own class, or it may lie on several devices.
nb::object content_in(nb::handle holder, const RefAccess &access, bool has_devices) {
    nb::object content = attribute(holder, constants.buf);
    if (!access.is_array(content.ptr())) return nb::object();
    if (!has_devices) return content;
    const nb::object sharding = attribute(content, constants.sharding);
    return as_object(Py_TYPE(sharding.ptr())) == access.sharding_class.ptr() ? content : nb::object();
}

}  // namespace

nb::object make_ref_access(nb::handle ref_class, nb::handle array_class, nb::handle sharding_class,
                           nb::handle is_top_level, nb::handle new_ref) {
    return RefAccessBox::make(nb::borrow(ref_class), nb::borrow(array_class), nb::borrow(sharding_class),
                              nb::borrow(is_top_level), nb::borrow(new_ref));
}

bool RefContents::find_holders(const Leaves &leaves, nb::tuple &known) {
    const nb::tuple last = known;
    Leaves types;
    types.reserve(positions_.size());
    holders_.reserve(positions_.size());
    bool is_known = true;
    for (size_t i = 0; i < positions_.size(); ++i) {
        PyObject *const ref = leaves[positions_[i]];
        nb::object type = attribute(ref, constants.aval), holder = attribute(ref, constants.refs);
        prefetch(holder.ptr());
        if (item_or_null(last, i) != type.ptr()) {
            if (!is_ordinary(type)) return false;
            is_known = false;
        }
        types.push_new(std::move(type));
        holders_.push_new(std::move(holder));
    }
    if (!is_known) known = nb::borrow<nb::tuple>(types.take_tuple());
    return true;
}

bool RefContents::read(const Leaves &leaves, const RefAccess &access, bool has_devices, nb::tuple &known) {
    if (!find_holders(leaves, known)) return false;
    contents_.reserve(positions_.size());
    for (size_t i = 0; i < holders_.size(); ++i) {
        nb::object content = content_in(holders_[i], access, has_devices);
        if (!content.is_valid()) return false;
        contents_.push_new(std::move(content));
    }
    return true;
}

bool RefContents::is_held_elsewhere(const Positions &written) const {
    if (kFreeThreaded) return false;
    // The ref has it, and this object.
    return !visit_written(written, [&](size_t ref, size_t) { return has_references(contents_[ref], 2); });
}

void RefContents::exchange(Leaves &leaves) {
    for (size_t i = 0; i < positions_.size(); ++i) std::swap(leaves.data()[positions_[i]], contents_.data()[i]);
}

void RefContents::write(const Positions &written, nb::handle contents) {
    for (size_t i = 0; i < holders_.size(); ++i) prefetch(holders_[i]);
    visit_written(written, [&](size_t ref, size_t i) {
        checked(PyObject_SetAttr(holders_[ref], constants.buf, item_of(contents, i).ptr()));
        return true;
    });
}

nb::handle item_of(nb::handle tuple, size_t i) {
    PyObject *const item = PyTuple_CheckExact(tuple.ptr()) ? item_or_null(tuple, i) : nullptr;
    if (!item) fail(PyExc_TypeError, "expected a longer tuple, got %U.", short_repr(tuple).ptr());
    return item;
}

}  // namespace pydag
