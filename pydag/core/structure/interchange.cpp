// SPDX-License-Identifier: Apache-2.0
#include "structure/interchange.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/pair_set.h"
#include "structure/compare.h"
#include "structure/node_refs.h"
#include "structure/paths.h"

#include <cmath>
#include <utility>

namespace pydag {
namespace {

// Pairs of equal values that have yet to be compared; owned, since comparing keys may run code.
class Pairs {
public:
    void push(PyObject *a, PyObject *b) {
        if (a == b) return;
        pending_.push_borrowed(a);
        pending_.push_borrowed(b);
    }
    // Compares all pairs, and what they hold, and removes them.
    bool take_and_compare() {
        while (!pending_.empty()) {
            interruptible_step();
            nb::object b = pending_.pop_owned(), a = pending_.pop_owned();
            if (met_.has(a, b)) continue;
            const size_t num_pending = pending_.size();
            if (Py_TYPE(a.ptr()) != Py_TYPE(b.ptr()) || !push_contents(a.ptr(), b.ptr())) return false;
            if (pending_.size() == num_pending) continue;
            met_.add(a, b);
        }
        return true;
    }

private:
    // The list, dict or tuple itself; a copy where another thread may change it.
    static nb::object of_one_moment(PyObject *object) {
        if (!kFreeThreaded || PyTuple_Check(object)) return nb::borrow(object);
        return checked(PyDict_Check(object) ? PyDict_Copy(object) : PyList_AsTuple(object));
    }

    // Compares two values of one type and pushes what they hold. False if they differ already.
    bool push_contents(PyObject *a, PyObject *b) {
        if (PyFloat_CheckExact(a)) return std::signbit(PyFloat_AS_DOUBLE(a)) == std::signbit(PyFloat_AS_DOUBLE(b));
        if (PyDict_CheckExact(a) || is_frozen_dict(a)) return push_items_of_dicts(a, b);
        if (!PyTuple_Check(a) && !PyList_CheckExact(a)) return true;
        const nb::object items = of_one_moment(a), others = of_one_moment(b);
        const Py_ssize_t size = PySequence_Fast_GET_SIZE(items.ptr());
        if (size != PySequence_Fast_GET_SIZE(others.ptr())) return false;
        for (Py_ssize_t i = 0; i < size; ++i) {
            PyObject *const x = PySequence_Fast_GET_ITEM(items.ptr(), i);
            PyObject *const y = PySequence_Fast_GET_ITEM(others.ptr(), i);
            if (!x || !y) return false;  // somebody is filling it
            push(x, y);
        }
        return true;
    }

    // False if the dicts were filled in another order. The keys are compared last, since that may run code.
    bool push_items_of_dicts(PyObject *first, PyObject *second) {
        const nb::object owned_a = of_one_moment(first), owned_b = of_one_moment(second);
        PyObject *const a = owned_a.ptr(), *const b = owned_b.ptr();
        if (PyDict_GET_SIZE(a) != PyDict_GET_SIZE(b)) return false;
        RefBuffer<16> keys;
        Py_ssize_t at_a = 0, at_b = 0;
        PyObject *key_a, *key_b, *value_a, *value_b;
        while (PyDict_Next(a, &at_a, &key_a, &value_a) && PyDict_Next(b, &at_b, &key_b, &value_b)) {
            keys.push_borrowed(key_a);
            keys.push_borrowed(key_b);
            push(key_a, key_b);
            push(value_a, value_b);
        }
        for (size_t i = 0; i < keys.size(); i += 2)
            if (!checked(PyObject_RichCompareBool(keys[i], keys[i + 1], Py_EQ))) return false;
        return true;
    }

    RefBuffer<16> pending_;
    PairSet<nb::handle, nb::handle> met_;  // pairs with contents: lists may share them
};

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
    if (a == b || RegistrationBox::check(a)) return true;
    Pairs pairs;
    if (KeysBox::check(a)) {
        const Keys &x = KeysBox::of(a), &y = KeysBox::of(b);
        if (!have_same_order(x, y)) return false;
        if (x.has_only_strings && y.has_only_strings) return true;
        pairs.push(x.tuple().ptr(), y.tuple().ptr());
    } else {
        pairs.push(a, b);
    }
    return pairs.take_and_compare();
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
