// SPDX-License-Identifier: Apache-2.0
#include "nodes/match_node.h"

#include "base/error.h"
#include "structure/node_refs.h"
#include "structure/paths.h"
#include "types/key_table.h"

#include <algorithm>
#include <vector>

namespace pydag {
namespace {

constexpr const char *expected_name(Kind kind) {
    if (traits(kind).is_mapping) return "an instance of dict, collections.OrderedDict, or collections.defaultdict";
    if (kind == Kind::kTuple) return "an instance of tuple";
    if (kind == Kind::kList) return "an instance of list";
    if (kind == Kind::kDeque) return "an instance of collections.deque";
    if (kind == Kind::kNamedTuple) return "an instance of collections.namedtuple";
    if (kind == Kind::kStructSequence) return "an instance of PyStructSequence type";
    return "None";
}

void check_kind(Node node, PyObject *const *refs, nb::handle object, const TypeInfo &info) {
    const nb::object type = class_of(object);  // the object's text is made by code that may change it
    if (is_registered(node.kind)) {
        PyObject *const registration = CustomRefs{refs}.registration_box();
        if (info.registration && info.kind == node.kind && same_registration(registration, info.registration)) return;
        fail(PyExc_ValueError, "Custom node type mismatch; expected type: %R, got type: %R; value: %U.",
             RegistrationBox::of(registration).type.ptr(), type.ptr(), short_repr(object).ptr());
    }
    const bool fits = info.kind == node.kind || (traits(info.kind).is_mapping && traits(node.kind).is_mapping);
    if (!fits) fail(PyExc_ValueError, "Expected %s, got %U.", expected_name(node.kind), short_repr(object).ptr());
    if (!has_many_classes(node.kind)) return;
    PyObject *const expected = TupleClassRefs{refs}.type();
    if (type.is(expected)) return;
    const char *const name = node.kind == Kind::kNamedTuple ? "namedtuple" : "PyStructSequence";
    const Py_ssize_t size = PyTuple_GET_SIZE(object.ptr());
    if (static_cast<size_t>(size) != node.count)
        fail(PyExc_ValueError, "%s arity mismatch; expected: %zu, got: %zd; tuple: %U.", name, size_t{node.count}, size,
             short_repr(object).ptr());
    fail(PyExc_ValueError, "%s type mismatch; expected type: %R, got type: %R; tuple: %U.", name, expected, type.ptr(),
         short_repr(object).ptr());
}

std::string list_text(nb::handle keys) { return text_of(short_repr(checked(PySequence_List(keys.ptr())))); }

[[noreturn]] void fail_keys(Kind kind, const Keys &expected, const Keys &actual, nb::handle object) {
    const auto sorted = [](RefBuffer<8> &keys) { return KeysBox::of(keys_of(keys.data(), keys.size(), true)).order(); };
    // What `keys` has and `others` doesn't, as optree shows it: sorted.
    const auto difference = [&](const char *label, const Keys &keys, const Keys &others) {
        RefBuffer<8> missing;
        const nb::object other_keys = checked(PySet_New(others.inserted.ptr()));
        for (uint32_t i = 0; i < keys.size(); ++i)
            if (!checked(PySet_Contains(other_keys.ptr(), keys.key(i)))) missing.push_borrowed(keys.key(i));
        return missing.empty() ? "" : label + list_text(sorted(missing));
    };
    RefBuffer<8> got;
    for (uint32_t i = 0; i < actual.size(); ++i) got.push_borrowed(actual.key(i));
    const std::string missing = difference(", missing key(s): ", expected, actual);
    const std::string extra = difference(", extra key(s): ", actual, expected);
    const bool is_dict = traits(kind).is_mapping;
    fail(PyExc_ValueError, "%s key mismatch; expected key(s): %s, got key(s): %s%s%s; %s: %U.",
         is_dict ? "dictionary" : "fields", list_text(expected.order()).c_str(),
         list_text(is_dict ? sorted(got) : actual.order()).c_str(), missing.c_str(), extra.c_str(),
         is_dict ? traits(kind).name : "value", short_repr(object).ptr());
}

// Puts the children, which stand on the stack in the order of `actual`, in the order of `expected`.
void reorder(Kind kind, const Keys &expected, const Keys &actual, nb::handle object, Stack &stack, size_t base) {
    const uint32_t count = expected.size();
    if (count != actual.size()) fail_keys(kind, expected, actual, object);
    const nb::object places = checked(PyDict_New());
    for (uint32_t i = 0; i < count; ++i)
        checked(PyDict_SetItem(places.ptr(), actual.key(i), checked(PyLong_FromSize_t(i)).ptr()));
    std::vector<uint32_t> order(count);
    for (uint32_t i = 0; i < count; ++i) {
        PyObject *const place = PyDict_GetItemWithError(places.ptr(), expected.key(i));
        if (!place && PyErr_Occurred()) nb::raise_python_error();
        // A key's own code can find the dict through the collector, and put anything there.
        const size_t found = place && PyLong_CheckExact(place) ? PyLong_AsSize_t(place) : count;
        PyErr_Clear();
        if (found >= count) fail_keys(kind, expected, actual, object);
        order[i] = static_cast<uint32_t>(found);
    }
    // A key whose `__eq__` changes its mind could claim two places.
    std::vector<uint32_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) fail_keys(kind, expected, actual, object);
    const std::vector<PyObject *> children(stack.data() + base, stack.data() + base + count);
    for (uint32_t i = 0; i < count; ++i) stack[base + count - 1 - i] = children[count - 1 - order[i]];
}

void check_meta(nb::handle expected, nb::handle found, nb::handle object) {
    if (equal_tuples(expected, found)) return;
    fail(PyExc_ValueError, "Mismatch of meta fields; expected: %U, got: %U; value: %U.", short_repr(expected).ptr(),
         short_repr(found).ptr(), short_repr(object).ptr());
}

void check_aux_data(nb::handle expected, nb::handle found, nb::handle object) {
    if (!checked(PyObject_RichCompareBool(expected.ptr(), found.ptr(), Py_NE))) return;
    fail(PyExc_ValueError, "Mismatch custom node data; expected: %U, got: %U; value: %U.", short_repr(expected).ptr(),
         short_repr(found).ptr(), short_repr(object).ptr());
}

}  // namespace

void match_node(Node node, PyObject *const *refs, nb::handle object, Namespace &space, Stack &stack) {
    const TypeInfo info = space.find_class_of(object.ptr());
    const nb::object registration = nb::borrow(info.registration);
    check_kind(node, refs, object, info);
    OpenOptions options{&space, {}, -1, false};
    Refs found;
    const size_t base = stack.size();
    const uint32_t count = open_node(object.ptr(), info, options, stack, found);
    if (has_keys(node.kind)) {
        const nb::handle expected = keys_box_of(node.kind, refs), actual = keys_box_of(node.kind, found.data());
        if (!equal_keys(expected, actual))
            reorder(node.kind, KeysBox::of(expected), KeysBox::of(actual), object, stack, base);
        if (node.kind == Kind::kFields) check_meta(FieldsRefs{refs}.meta(), FieldsRefs{found.data()}.meta(), object);
        return;
    }
    if (node.kind == Kind::kCustom)
        check_aux_data(CustomRefs{refs}.aux_data(), CustomRefs{found.data()}.aux_data(), object);
    const char *const name = node.kind == Kind::kCustom ? "Custom type" : traits(node.kind).name;
    if (count != node.count)
        fail(PyExc_ValueError, "%s arity mismatch; expected: %zu, got: %zu; %s: %U.", name, size_t{node.count},
             size_t{count}, node.kind == Kind::kCustom ? "value" : name, short_repr(object).ptr());
}

}  // namespace pydag
