// SPDX-License-Identifier: Apache-2.0
#include "structure/interchange.h"

#include "base/error.h"
#include "structure/compare.h"
#include "structure/node_refs.h"
#include "structure/paths.h"
#include "types/values.h"

namespace pydag {
namespace {

std::string with_types(nb::handle value) {
    const std::string text = text_of(short_repr(value));
    const bool is_plain = PyTuple_Check(value.ptr()) || PyList_Check(value.ptr()) || PyDict_Check(value.ptr());
    return is_plain ? text : text + " of type " + Py_TYPE(value.ptr())->tp_name;
}

// Of a node whose class is registered.
std::string class_name(PyObject *const *refs) {
    return reinterpret_cast<PyTypeObject *>(node_registration(refs).type.ptr())->tp_name;
}

}  // namespace

bool are_interchangeable(PyObject *a, PyObject *b) {
    if (a == b) return true;
    if (RegistrationBox::check(a)) return RegistrationBox::check(b) && same_registration(a, b);
    if (!KeysBox::check(a)) return is_same_value(a, b, nullptr);
    if (!KeysBox::check(b)) return false;
    const Keys &x = KeysBox::of(a), &y = KeysBox::of(b);
    if (!have_same_order(x, y)) return false;
    if (x.has_only_strings && y.has_only_strings) return equal_keys(a, b);
    return is_same_value(x.tuple(), y.tuple(), nullptr);
}

bool are_interchangeable(Node node, PyObject *const *refs_a, PyObject *const *refs_b) {
    const NodeRefs a{node.kind, refs_a}, b{node.kind, refs_b};
    for (uint32_t i = 0; i < a.size(); ++i)
        if (is_compared(a.role(i)) && !are_interchangeable(a.ref(i), b.ref(i))) return false;
    return true;
}

Words told_apart_by(Node node, PyObject *const *refs_a, PyObject *const *refs_b) {
    if (has_keys(node.kind)) {
        const Keys &keys_a = node_keys(node.kind, refs_a), &keys_b = node_keys(node.kind, refs_b);
        if (!have_same_order(keys_a, keys_b)) {
            const auto words = [&](const Keys &keys) {
                const bool is_mapping = traits(node.kind).is_mapping;
                const std::string what = is_mapping ? std::string("a ") + traits(node.kind).name + " filled"
                                                    : class_name(refs_a) + " whose attributes were set";
                return what + " in the order " + text_of(short_repr(checked(PySequence_List(keys.tuple().ptr()))));
            };
            return {words(keys_a), words(keys_b)};
        }
    }
    const NodeRefs a{node.kind, refs_a}, b{node.kind, refs_b};
    for (uint32_t i = 0; i < a.size(); ++i) {
        if (!is_compared(a.role(i)) || are_interchangeable(a.ref(i), b.ref(i))) continue;
        const auto words = [&](const NodeRefs &refs) {
            PyObject *const ref = refs.ref(i);
            return outline({node.kind, false, 0, node.count}, refs.at) + ", with " +
                   with_types(KeysBox::check(ref) ? KeysBox::of(ref).tuple() : nb::borrow(ref));
        };
        return {words(a), words(b)};
    }
    return {outline(node, refs_a), outline(node, refs_b)};
}

}  // namespace pydag
