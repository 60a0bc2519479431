// SPDX-License-Identifier: Apache-2.0
#include "types/values.h"

#include "base/constants.h"
#include "base/equality.h"
#include "base/stack_room.h"
#include "base/text_hash.h"
#include "types/classes.h"

#include <bit>
#include <cmath>

namespace pydag {
namespace {

// Compared by their type's own function, which runs no Python code.
bool is_plain(PyTypeObject *type) {
    return type == &PyLong_Type || type == &PyUnicode_Type || type == &PyBool_Type || type == &PyBytes_Type;
}

// Whether an object is a tuple that consists only of its items.
bool is_tuple(PyObject *object, Namespace *space) {
    if (!PyTuple_Check(object)) return false;
    if (!space) return is_tuple_of_items(object);
    const TypeInfo info = space->find(Py_TYPE(object));
    return !info.registration && !is_leaf(info.kind);
}

// Whether an object is a set of Python's, or of a subclass that compares as one.
bool is_set(PyObject *object) {
    PyTypeObject *const type = Py_TYPE(object);
    return PyAnySet_Check(object) && type->tp_richcompare == PyFrozenSet_Type.tp_richcompare &&
           type->tp_iter == PyFrozenSet_Type.tp_iter;
}

// A scalar of NumPy's: two that are equal may differ in sign or unit, and be unequal both being NaN. But they have one
// `repr` only if they are the same.
bool is_numpy_scalar(PyTypeObject *type) { return is_of_numpy(type, "numpy.generic"); }

nb::object attributes_of(PyObject *object, std::initializer_list<PyObject *> names) {
    RefBuffer<4> values;
    for (PyObject *const name : names) values.push_new(checked(PyObject_GetAttr(object, name)));
    return values.take_tuple();
}

bool is_true(nb::handle object, PyObject *name) {
    return checked(PyObject_IsTrue(checked(PyObject_GetAttr(object.ptr(), name)).ptr())) != 0;
}

// Whether a class has a method that `@dataclass` wrote: such a function stands in no file.
bool has_written(const nb::object &names, PyObject *name) {
    const nb::object method = find_in_dict(names, name);
    if (!method.is_valid() || !PyFunction_Check(method.ptr())) return false;
    const auto *const code = reinterpret_cast<PyCodeObject *>(PyFunction_GET_CODE(method.ptr()));
    return PyUnicode_CompareWithASCIIString(code->co_filename, "<string>") == 0;
}

// The values that a frozen dataclass is compared by: a tuple; null for any other object, and for a class that says
// itself how it is compared or hashed. `@dataclass` writes how it is compared and hashed, as a tuple of these values:
// so they say what it is, down to the sign of zero.
nb::object dataclass_values(PyObject *object) {
    if (!is_heap_type(Py_TYPE(object))) return nb::object();
    const nb::object type = class_of(object);
    const nb::object names = dict_of_class(Py_TYPE(object));
    const nb::object parameters = find_in_dict(names, constants.dataclass_params);
    if (!parameters.is_valid() || !is_true(parameters, constants.frozen) || !is_true(parameters, constants.eq) ||
        !has_written(names, constants.eq_method) || !has_written(names, constants.hash_method))
        return nb::object();
    const nb::object fields = checked(PySequence_Tuple(call(nb::handle(constants.dataclass_fields), type).ptr()));
    RefBuffer<8> values;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields.ptr()); ++i) {
        const nb::handle field(PyTuple_GET_ITEM(fields.ptr(), i));
        if (!is_true(field, constants.compare)) continue;
        const nb::object name = checked(PyObject_GetAttr(field.ptr(), constants.name));
        values.push_new(checked(PyObject_GetAttr(object, name.ptr())));
    }
    return values.take_tuple();
}

// The parts of an object, as a tuple; null if it isn't compared by its parts, or isn't filled yet.
nb::object items_of(PyObject *object, Namespace *space) {
    if (PyTuple_Check(object)) {
        if (!is_tuple(object, space) || !is_filled(object)) return nb::object();
        return tuple_of(&PyTuple_GET_ITEM(object, 0), static_cast<size_t>(PyTuple_GET_SIZE(object)));
    }
    if (PyRange_Check(object)) return attributes_of(object, {constants.start, constants.stop, constants.step});
    if (is_frozen_dict(object)) return checked(PyList_AsTuple(checked(PyDict_Items(object)).ptr()));
    if (space) return nb::object();
    PyTypeObject *const type = Py_TYPE(object);
    if (PyList_CheckExact(object)) return checked(PyList_AsTuple(object));
    if (PyDict_CheckExact(object) || type == constants.default_dict || PyODict_CheckExact(object))
        return checked(PySequence_Tuple(checked(PyMapping_Items(object)).ptr()));
    if (type == constants.deque || is_set(object)) return checked(PySequence_Tuple(object));
    if (type == &PySlice_Type) return attributes_of(object, {constants.start, constants.stop, constants.step});
    if (type == constants.partial) return attributes_of(object, {constants.func, constants.args, constants.keywords});
    return dataclass_values(object);
}

bool is_same_float(double a, double b) {
    return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

// An instance of float or complex, or of a subclass that may hold more.
bool is_float(PyObject *object) { return PyFloat_Check(object) || PyComplex_Check(object); }
Py_complex number_in(PyObject *object) {
    return PyFloat_Check(object) ? Py_complex{PyFloat_AS_DOUBLE(object), 0}
                                 : reinterpret_cast<PyComplexObject *>(object)->cval;
}
bool is_nan(PyObject *object) { return std::isnan(number_in(object).real) || std::isnan(number_in(object).imag); }
bool is_same_number(PyObject *a, PyObject *b) {
    const Py_complex x = number_in(a), y = number_in(b);
    return is_same_float(x.real, y.real) && is_same_float(x.imag, y.imag);
}

// By Python's own hash; by the address where there is none.
uint64_t hash_object(nb::handle object) {
    if (PyType_Check(object.ptr())) return hash_address(object.ptr());
    const Py_hash_t hash = PyObject_Hash(object.ptr());
    if (hash != -1) return static_cast<uint64_t>(hash);
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) nb::raise_python_error();
    PyErr_Clear();
    return hash_address(object.ptr());
}

// Compares two objects that aren't the same object.
class ValueComparison {
public:
    explicit ValueComparison(Namespace *space) : space_(space) {}

    bool run(nb::handle a, nb::handle b) {
        require_stack_room();  // sets within sets
        return are_same_in_pairs(
            a, b, [this](nb::handle x, nb::handle y, ItemPairs &pairs) { return compare(x.ptr(), y.ptr(), pairs); });
    }

private:
    Sameness compare(PyObject *a, PyObject *b, ItemPairs &pairs) {
        PyTypeObject *const type = Py_TYPE(a);
        if (type != Py_TYPE(b)) return Sameness::kDifferent;
        if (is_plain(type)) return as_sameness(checked(PyObject_RichCompareBool(a, b, Py_EQ)) != 0);
        if (is_float(a) && !is_same_number(a, b)) return Sameness::kDifferent;
        if (type == &PyFloat_Type || type == &PyComplex_Type) return Sameness::kSame;
        pairs = {items_of(a, space_), items_of(b, space_)};
        if (pairs.items.is_valid() != pairs.others.is_valid()) return Sameness::kDifferent;
        if (pairs.items.is_valid()) {
            if (!PyAnySet_Check(a)) return Sameness::kByItems;
            return as_sameness(have_same_elements(a, b, pairs));
        }
        if (space_ || PyType_Check(a)) return Sameness::kDifferent;
        if (is_float(a) && is_nan(a)) return Sameness::kSame;
        if (!is_float(a) && is_numpy_scalar(type)) return as_sameness(have_same_text(a, b));
        return as_sameness(are_equal_objects(a, b));
    }

    static bool have_same_text(PyObject *a, PyObject *b) {
        const nb::object text = checked(PyObject_Repr(a)), other = checked(PyObject_Repr(b));
        return PyUnicode_Compare(text.ptr(), other.ptr()) == 0;
    }

    // Whether each element of one set is the same as one of the other set. Sets that hold one another several times are
    // compared once.
    bool have_same_elements(nb::handle a, nb::handle b, const ItemPairs &elements) {
        const Py_ssize_t size = PyTuple_GET_SIZE(elements.items.ptr());
        if (size != PyTuple_GET_SIZE(elements.others.ptr())) return false;
        if (same_sets_.has(a, b)) return true;
        ValueHashes hashes(space_);
        std::unordered_multimap<uint64_t, PyObject *> left;
        for (Py_ssize_t i = 0; i < size; ++i) {
            PyObject *const other = PyTuple_GET_ITEM(elements.others.ptr(), i);
            left.emplace(hashes.of(other), other);
        }
        for (Py_ssize_t i = 0; i < size; ++i) {
            PyObject *const element = PyTuple_GET_ITEM(elements.items.ptr(), i);
            auto [found, end] = left.equal_range(hashes.of(element));
            while (found != end && element != found->second && !run(element, found->second)) ++found;
            if (found == end) return false;
            left.erase(found);
        }
        same_sets_.add(a, b);
        return true;
    }

    Namespace *const space_;
    PairSet<nb::handle, nb::handle> same_sets_;
};

}  // namespace

bool is_same_value(nb::handle a, nb::handle b, Namespace *space) {
    return a.is(b) || (Py_TYPE(a.ptr()) == Py_TYPE(b.ptr()) && ValueComparison(space).run(a, b));
}

uint64_t ValueHashes::hash(nb::handle value, int levels) {
    PyTypeObject *const type = Py_TYPE(value.ptr());
    if (is_plain(type)) return hash_object(value);
    const bool is_number = space_ ? type == &PyFloat_Type || type == &PyComplex_Type : is_float(value.ptr());
    if (is_number) return is_nan(value.ptr()) ? 1 : hash_object(value);
    // Of the value itself nothing is remembered: it is hashed once, or is a tuple that nobody else has.
    const bool is_within = levels < kLevels;
    if (is_within)
        if (const auto known = known_.find({value.ptr(), levels}); known != known_.end()) return known->second;
    const nb::object items = items_of(value.ptr(), space_);
    if (!items.is_valid()) {
        if (space_) return hash_address(value.ptr());
        return hash_object(is_numpy_scalar(type) ? checked(PyObject_Repr(value.ptr())) : nb::borrow(value));
    }
    const uint64_t hash = PyAnySet_Check(value.ptr()) ? hash_elements(items, levels) : hash_items(items, levels);
    if (is_within) {
        kept_.push_borrowed(value.ptr());
        known_.emplace(std::pair(value.ptr(), levels), hash);
    }
    return hash;
}

uint64_t ValueHashes::hash_items(nb::handle items, int levels) {
    auto result = static_cast<uint64_t>(PyTuple_GET_SIZE(items.ptr()));
    for (Py_ssize_t i = 0; levels > 0 && i < PyTuple_GET_SIZE(items.ptr()); ++i) {
        interruptible_step();
        result = mix(result, hash(PyTuple_GET_ITEM(items.ptr(), i), levels - 1));
    }
    return result;
}

uint64_t ValueHashes::hash_elements(nb::handle items, int levels) {
    auto result = static_cast<uint64_t>(PyTuple_GET_SIZE(items.ptr()));
    for (Py_ssize_t i = 0; levels > 0 && i < PyTuple_GET_SIZE(items.ptr()); ++i) {
        interruptible_step();
        result += mix(0, hash(PyTuple_GET_ITEM(items.ptr(), i), levels - 1));
    }
    return result;
}

uint32_t ValueTable::number_of(nb::handle value) {
    if (const uint32_t number = known_.find(value.ptr()); number != IdentityTable::kNew) return number;
    const nb::object owned = nb::borrow(value);
    const uint64_t hash = hashes_.of(value);
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto found = first; found != last; ++found)
        if (is_same_value(values_[found->second], value, space_)) return found->second;
    const auto number = static_cast<uint32_t>(values_.size());
    values_.push_borrowed(value.ptr());
    known_.find_or_add(value.ptr(), number);
    by_hash_.emplace(hash, number);
    return number;
}

}  // namespace pydag
