// SPDX-License-Identifier: Apache-2.0
#include "nodes/nodes.h"

#include "base/constants.h"
#include "base/equality.h"
#include "base/error.h"
#include "structure/node_difference.h"
#include "structure/node_refs.h"
#include "structure/paths.h"
#include "structure/prefix.h"

#include <vector>

namespace pydag {
namespace {

const char *expected_name(Kind kind) {
    if (traits(kind).is_mapping)
        return constants.frozen_dict
                   ? "an instance of dict, frozendict, collections.OrderedDict, or collections.defaultdict"
                   : "an instance of dict, collections.OrderedDict, or collections.defaultdict";
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
        const nb::object expected = RegistrationBox::of(registration).type;
        const bool is_gone = type.is(expected) && !info.registration;
        const std::string why = is_gone ? "; the class is not registered any more" : class_difference(expected, type);
        fail(PyExc_ValueError, "Custom node type mismatch; expected type: %R, got type: %R%s; value: %U.",
             expected.ptr(), type.ptr(), why.c_str(), short_repr(object).ptr());
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
    fail(PyExc_ValueError, "%s type mismatch; expected type: %R, got type: %R%s; tuple: %U.", name, expected,
         type.ptr(), class_difference(expected, type).c_str(), short_repr(object).ptr());
}

// Whether an object of the node's kind and class fits the node. What a flatten function gives is compared
// before the children are counted: mostly it says better what differs.
Fit fit_actual(Node node, PyObject *const *refs, Node actual, PyObject *const *found, std::vector<uint32_t> &order) {
    if (node.kind != Kind::kCustom) return fit_node(node, refs, actual, found, order);
    if (!are_equal_objects(CustomRefs{refs}.aux_data(), CustomRefs{found}.aux_data())) return Fit::kOtherData;
    return node.count == actual.count ? Fit::kFits : Fit::kOtherCount;
}

// Sorts the children on the stack from the order of the object to that of the node.
void reorder(const std::vector<uint32_t> &order, PyObject **slots) {
    const size_t count = order.size();
    const std::vector<PyObject *> children(slots, slots + count);
    for (size_t i = 0; i < count; ++i) slots[count - 1 - i] = children[count - 1 - order[i]];
}

}  // namespace

void match_node(Node node, PyObject *const *refs, nb::handle object, Namespace &space, Stack &stack) {
    const TypeInfo info = find_opened(object.ptr(), space);
    const nb::object registration = nb::borrow(info.registration);
    check_kind(node, refs, object, info);
    OpenOptions options{&space, {}, -1, false};
    Refs found;
    const size_t base = stack.size();
    const uint32_t count = open_node(object.ptr(), info, options, stack, found);
    const Node actual = {info.kind, false, 0, count};
    std::vector<uint32_t> order;
    const Fit fit = fit_actual(node, refs, actual, found.data(), order);
    if (fit != Fit::kFits)
        fail(PyExc_ValueError, "%s; %s: %U.", misfit(fit, node, refs, actual, found.data()).c_str(),
             is_registered(node.kind) ? "value" : traits(node.kind).name, short_repr(object).ptr());
    reorder(order, stack.data() + base);
}

}  // namespace pydag
