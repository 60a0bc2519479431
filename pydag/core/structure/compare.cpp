// SPDX-License-Identifier: Apache-2.0
#include "structure/compare.h"

#include "base/equality.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "structure/cursor.h"
#include "structure/node_refs.h"
#include "types/values.h"

#include <algorithm>
#include <tuple>

namespace pydag {
namespace {

bool have_same_nodes(const Structure &a, const Structure &b) {
    return a.num_nodes == b.num_nodes && a.num_refs == b.num_refs &&
           std::memcmp(a.nodes, b.nodes, a.num_nodes * sizeof(Node)) == 0;
}

bool have_same_setting(const Structure &a, const Structure &b) {
    return have_same_nodes(a, b) && a.none_is_leaf == b.none_is_leaf && are_compatible(a.namespace_, b.namespace_);
}

// Whether `test(role, x, y)` is true for every two references at the same index that aren't one object. Both structures
// have the same nodes.
template <class Test>
bool all_of_differing_refs(const Structure &a, const Structure &b, Test test) {
    PyObject *const *const end = a.refs + a.num_refs;
    PyObject *const *ref = a.refs, *const *other = b.refs;
    Cursor at(a);
    for (;; ++ref, ++other) {
        std::tie(ref, other) = std::mismatch(ref, end, other);
        if (ref == end) return true;
        interruptible_step();
        while (at.refs() + num_refs(at.node()) <= ref) at.step();
        if (!test(traits(at.kind()).roles[ref - at.refs()], *ref, *other)) return false;
    }
}

bool is_empty(nb::handle name) { return PyUnicode_GET_LENGTH(name.ptr()) == 0; }

}  // namespace

bool is_same(const Structure &a, const Structure &b) {
    return have_same_nodes(a, b) && a.none_is_leaf == b.none_is_leaf &&
           std::equal(a.refs, a.refs + a.num_refs, b.refs) &&
           checked(PyUnicode_Compare(a.namespace_, b.namespace_)) == 0;
}

// Keys are compared in their order, registrations by what they do, the class of a tuple by identity (a metaclass may
// have any `==`), all else by identity, then `==`.
bool equal_refs(Role role, PyObject *a, PyObject *b) {
    if (a == b) return true;
    if (role == Role::kClass) return false;
    if (KeysBox::check(a)) return KeysBox::check(b) && equal_keys(a, b);
    if (RegistrationBox::check(a)) return RegistrationBox::check(b) && same_registration(a, b);
    return are_equal_objects(a, b);
}

bool are_equal(const Structure &a, const Structure &b) {
    return have_same_setting(a, b) && all_of_differing_refs(a, b, [](Role role, PyObject *x, PyObject *y) {
               return !is_compared(role) || equal_refs(role, x, y);
           });
}

// The keys of equal structures are equal in traversal order, so only the permutations that lead from that order to the
// order of insertion are compared.
bool have_same_order(const Structure &a, const Structure &b) {
    return have_same_nodes(a, b) && all_of_differing_refs(a, b, [](Role, PyObject *x, PyObject *y) {
               return !KeysBox::check(x) || (KeysBox::check(y) && have_same_order(KeysBox::of(x), KeysBox::of(y)));
           });
}

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

bool are_interchangeable(const Structure &a, const Structure &b) {
    return have_same_setting(a, b) && all_of_differing_refs(a, b, [](Role role, PyObject *x, PyObject *y) {
               return !is_compared(role) || (role != Role::kClass && are_interchangeable(x, y));
           });
}

bool are_compatible(nb::handle a, nb::handle b) {
    return is_empty(a) || is_empty(b) || PyUnicode_Compare(a.ptr(), b.ptr()) == 0;
}

void check_registrations(const Structure &structure, nb::handle namespace_, const char *purpose) {
    if (!is_empty(structure.namespace_) || is_empty(namespace_)) return;
    const NamespaceRef space = Namespace::get(namespace_);
    for (Cursor at(structure); at.is_at_node(); at.step()) {
        if (!is_registered(at.kind())) continue;
        PyObject *const box = CustomRefs{at.refs()}.registration_box();
        PyObject *const type = RegistrationBox::of(box).type.ptr();
        const TypeInfo info = space->find(reinterpret_cast<PyTypeObject *>(type));
        if (info.registration && same_registration(info.registration, box)) continue;
        fail(PyExc_ValueError,
             "PyDagSpecs cannot be %s: custom PyTree type %R no longer resolves to its original registration in "
             "namespace %R.",
             purpose, type, namespace_.ptr());
    }
}

nb::object merge_namespaces(const Structure &a, const Structure &b) {
    if (a.none_is_leaf != b.none_is_leaf) fail(PyExc_ValueError, "PyDagSpecs must have the same none_is_leaf value.");
    if (!are_compatible(a.namespace_, b.namespace_))
        fail(PyExc_ValueError, "PyDagSpecs must have the same namespace, got %R vs. %R.", a.namespace_, b.namespace_);
    nb::object namespace_ = nb::borrow(is_empty(a.namespace_) ? b.namespace_ : a.namespace_);
    check_registrations(a, namespace_, "merged");
    check_registrations(b, namespace_, "merged");
    return namespace_;
}

}  // namespace pydag
