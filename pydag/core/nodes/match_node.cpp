// SPDX-License-Identifier: Apache-2.0
#include "nodes/match_node.h"

#include "base/error.h"
#include "structure/node_refs.h"
#include "structure/paths.h"
#include "types/key_match.h"

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
    const nb::object type = class_of(object);  // owned: making the object's text may run code that changes it
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

// Sorts the children on the stack from the order of `actual` to the order of `expected`.
void reorder(Kind kind, nb::handle expected, nb::handle actual, nb::handle object, Stack &stack, size_t base) {
    std::vector<uint32_t> places;
    const bool is_mapping = traits(kind).is_mapping;
    if (!match_keys(expected, actual, places))
        fail(PyExc_ValueError, "%s key mismatch; %s; %s: %U.", is_mapping ? "dictionary" : "fields",
             key_mismatch(KeysBox::of(expected), KeysBox::of(actual)).c_str(), is_mapping ? traits(kind).name : "value",
             short_repr(object).ptr());
    const auto count = static_cast<uint32_t>(places.size());
    PyObject **const slots = stack.data() + base;
    const std::vector<PyObject *> children(slots, slots + count);
    for (uint32_t i = 0; i < count; ++i) slots[count - 1 - i] = children[count - 1 - places[i]];
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
    const TypeInfo info = as_opened(object.ptr(), space.find_class_of(object.ptr()));
    const nb::object registration = nb::borrow(info.registration);
    check_kind(node, refs, object, info);
    OpenOptions options{&space, {}, -1, false};
    Refs found;
    const size_t base = stack.size();
    const uint32_t count = open_node(object.ptr(), info, options, stack, found);
    if (has_keys(node.kind)) {
        reorder(node.kind, keys_box_of(node.kind, refs), keys_box_of(node.kind, found.data()), object, stack, base);
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
