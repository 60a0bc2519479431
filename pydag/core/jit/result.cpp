// SPDX-License-Identifier: Apache-2.0
#include "jit/result.h"

#include "base/buffer.h"
#include "base/constants.h"
#include "base/tuples.h"
#include "spec/spec.h"
#include "walks/walks.h"

#include <atomic>

namespace pydag {
namespace {

bool is_sequence(nb::handle object) { return PyTuple_CheckExact(object.ptr()) || PyList_CheckExact(object.ptr()); }

nb::object tuple_from(nb::handle sequence) { return checked(PySequence_Tuple(sequence.ptr())); }

std::atomic<PyTypeObject *> filled_class = nullptr;  // owned, for the life of the process

nb::object tuple_in(nb::handle object, PyObject *name) {
    nb::object found = checked(PyObject_GetAttr(object.ptr(), name));
    if (!PyTuple_CheckExact(found.ptr())) fail(PyExc_TypeError, "expected a tuple, got %U.", short_repr(found).ptr());
    return found;
}

// All leaves of a result, given those that JAX traces, or refs that stand for some.
nb::object with_statics(const nb::object &traced, nb::handle statics) {
    if (statics.is_none()) return traced;
    const nb::object rest = tuple_from(traced), positions = tuple_in(statics, constants.positions),
                     values = tuple_in(statics, constants.values);
    const Py_ssize_t num_statics = PyTuple_GET_SIZE(values.ptr()), count = PyTuple_GET_SIZE(rest.ptr()) + num_statics;
    if (PyTuple_GET_SIZE(positions.ptr()) != num_statics)
        fail(PyExc_ValueError, "there must be a value for each position");
    RefBuffer<96> found;
    Py_ssize_t next = 0;
    const auto next_position = [&] {
        if (next == num_statics) return count;
        const Py_ssize_t position = PyLong_AsSsize_t(PyTuple_GET_ITEM(positions.ptr(), next));
        if (position == -1 && PyErr_Occurred()) nb::raise_python_error();
        return position;
    };
    Py_ssize_t position = next_position();
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (i == position) {
            found.push_borrowed(PyTuple_GET_ITEM(values.ptr(), next++));
            position = next_position();
        } else {
            if (i - next >= PyTuple_GET_SIZE(rest.ptr())) fail(PyExc_IndexError, "there are too few leaves");
            found.push_borrowed(PyTuple_GET_ITEM(rest.ptr(), i - next));
        }
    }
    return found.take_list();
}

}  // namespace

nb::object make_result(nb::handle structure, nb::handle leaves) {
    nb::object spec = nb::borrow(structure), sources = nb::none(), statics = nb::none();
    if (PyTuple_CheckExact(structure.ptr()) && PyTuple_GET_SIZE(structure.ptr()) == 3) {
        spec = nb::borrow(PyTuple_GET_ITEM(structure.ptr(), 0));
        sources = nb::borrow(PyTuple_GET_ITEM(structure.ptr(), 1));
        statics = nb::borrow(PyTuple_GET_ITEM(structure.ptr(), 2));
        if (!sources.is_none() && !PyTuple_CheckExact(sources.ptr()))
            fail(PyExc_TypeError, "the sources must be a tuple, got %U.", short_repr(sources).ptr());
    }
    spec_of(spec);
    if (!is_sequence(leaves))
        fail(PyExc_TypeError, "the leaves must be a tuple or a list, got %U.", short_repr(leaves).ptr());
    return ResultBox::make(std::move(spec), nb::borrow(leaves), std::move(sources), std::move(statics));
}

nb::object open_result(nb::handle object) {
    const Result &result = unboxed<ResultBox>(object);
    nb::object structure = result.spec;
    if (!result.sources.is_none() || !result.statics.is_none())
        structure = tuple_of(std::move(structure), nb::object(result.sources), nb::object(result.statics));
    return tuple_of(nb::object(result.leaves), std::move(structure));
}

nb::object build_result(nb::handle object) {
    if (!ResultBox::check(object)) return nb::borrow(object);
    const Result &result = unboxed<ResultBox>(object);
    if (!result.sources.is_none()) fail(PyExc_TypeError, "the result holds refs of the caller's");
    const nb::object spec = result.spec, leaves = result.leaves, statics = result.statics;
    return unflatten(spec_of(spec).structure(), with_statics(leaves, statics));
}

bool holds_refs(nb::handle object) {
    if (ResultBox::check(object)) return !ResultBox::of(object).sources.is_none();
    return Py_TYPE(object.ptr()) == filled_class.load(std::memory_order_acquire);
}

void set_filled_class(nb::type_object type) {
    filled_class.store(reinterpret_cast<PyTypeObject *>(incref(type.ptr())), std::memory_order_release);
}

nb::object fill_result(nb::handle object, nb::handle given, nb::handle new_ref) {
    if (!ResultBox::check(object)) return call(checked(PyObject_GetAttr(object.ptr(), constants.fill)), given);
    const Result &result = unboxed<ResultBox>(object);
    const nb::object spec = result.spec, leaves = tuple_from(result.leaves), sources = result.sources,
                     statics = result.statics;
    const nb::object others = tuple_from(given);
    const auto size_of = [](const nb::object &tuple) { return PyTuple_GET_SIZE(tuple.ptr()); };
    RefBuffer<96> found;
    Py_ssize_t next = 0;
    for (Py_ssize_t i = 0; i < size_of(sources); ++i) {
        const Py_ssize_t source = PyLong_AsSsize_t(PyTuple_GET_ITEM(sources.ptr(), i));
        if (source == -1 && PyErr_Occurred()) nb::raise_python_error();
        if (source >= size_of(others) || (source < 0 && next >= size_of(leaves)))
            fail(PyExc_IndexError, "there are too few leaves");
        if (source >= 0) found.push_borrowed(PyTuple_GET_ITEM(others.ptr(), source));
        else if (source == kSourceArray) found.push_borrowed(PyTuple_GET_ITEM(leaves.ptr(), next++));
        else found.push_new(call(new_ref, nb::handle(PyTuple_GET_ITEM(leaves.ptr(), next++))));
    }
    return unflatten(spec_of(spec).structure(), with_statics(found.take_list(), statics));
}

}  // namespace pydag
