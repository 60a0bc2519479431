// SPDX-License-Identifier: Apache-2.0
#include "jit/update_plan.h"

#include "base/error.h"
#include "base/tuples.h"
#include "jit/result.h"
#include "spec/spec.h"
#include "walks/walks.h"

namespace pydag {
namespace {

// A tuple or list of so many items, which no other thread changes meanwhile; null for anything else.
nb::object items_of(nb::handle object, size_t count) {
    if (!PyTuple_CheckExact(object.ptr()) && !PyList_CheckExact(object.ptr())) return nb::object();
    nb::object items = kFreeThreaded ? checked(PySequence_Tuple(object.ptr())) : nb::borrow(object);
    return static_cast<size_t>(PySequence_Fast_GET_SIZE(items.ptr())) == count ? items : nb::object();
}

// The items of a tuple or list, as many as there are positions, in their places among the leaves.
void put(Buffer<PyObject *, 64> &leaves, RefBuffer<64> &owned, const UpdatePlan::Positions &positions,
         nb::handle items) {
    const nb::object given = items_of(items, positions.size());
    if (!given.is_valid())
        fail(PyExc_TypeError, "there are %zu positions for %U.", positions.size(), short_repr(items).ptr());
    for (size_t i = 0; i < positions.size(); ++i) {
        PyObject *const leaf = PySequence_Fast_GET_ITEM(given.ptr(), static_cast<Py_ssize_t>(i));
        owned.push_borrowed(leaf);
        leaves[positions[i]] = leaf;
    }
}

}  // namespace

nb::object make_update_plan(UpdatePlan plan) {
    const Structure &structure = spec_of(plan.spec).structure();
    for (const uint32_t position : plan.positions)
        if (position >= structure.num_leaves) fail(PyExc_IndexError, "there is no leaf %u", unsigned{position});
    for (const uint32_t position : plan.origins)
        if (position >= structure.num_nodes) fail(PyExc_IndexError, "there is no node %u", unsigned{position});
    return UpdatePlanBox::make(std::move(plan));
}

nb::object make_updated(nb::handle given) {
    const nb::object parts = items_of(given, 3);
    if (!parts.is_valid())
        fail(PyExc_TypeError, "expected a result, a plan and leaves, got %U.", short_repr(given).ptr());
    PyObject **const items = PySequence_Fast_ITEMS(parts.ptr());
    return UpdatedBox::make(nb::borrow(items[0]), nb::borrow(items[2]), nb::borrow(items[1]));
}

nb::object open_updated(nb::handle object) {
    const Updated &updated = unboxed<UpdatedBox>(object);
    return tuple_of(nb::object(updated.result), nb::object(updated.plan), nb::object(updated.leaves));
}

nb::object carry_out(nb::handle object, nb::handle tree, nb::handle given) {
    const UpdatePlan &plan = unboxed<UpdatePlanBox>(object);
    const Structure &structure = spec_of(plan.spec).structure();
    const NamespaceRef space = Namespace::get(structure.namespace_);
    Buffer<PyObject *, 64> leaves;
    RefBuffer<64> owned;  // a writer is Python code, which may change the list
    std::fill_n(leaves.extend(structure.num_leaves), structure.num_leaves, nullptr);
    put(leaves, owned, plan.positions, given);
    NodeObjects objects;
    write_leaves(tree,
                 {.structure = structure,
                  .leaves = leaves.data(),
                  .space = *space,
                  .writers = plan.writers,
                  .writes_foreign = true,
                  .roots = Roots(plan.roots)},
                 objects);
    nb::object found = checked(PyList_New(0));
    for (const uint32_t position : plan.origins) checked(PyList_Append(found.ptr(), objects[position]));
    return found;
}

nb::object update_arguments(nb::handle object, nb::handle arguments, nb::object result) {
    const Updated &updated = unboxed<UpdatedBox>(object);
    const nb::object plan = updated.plan, leaves = updated.leaves;
    if (plan.is_none()) return result;
    const nb::object origins = carry_out(plan, arguments, leaves);
    const nb::object returned = UpdatePlanBox::of(plan).returned;
    return returned.is_none() ? result : call(returned, nb::handle(result), nb::handle(origins));
}

}  // namespace pydag
