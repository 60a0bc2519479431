// SPDX-License-Identifier: Apache-2.0
#include "walks/walks.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/pair_set.h"
#include "base/tuples.h"
#include "nodes/open.h"

namespace pydag {
namespace {

// Compared by their type's own function, which runs no Python code.
bool has_plain_equality(PyTypeObject *type) {
    return type == &PyLong_Type || type == &PyBool_Type || type == &PyFloat_Type || type == &PyComplex_Type ||
           type == &PyUnicode_Type || type == &PyBytes_Type || type == &PyRange_Type;
}

bool differs_from_itself(nb::handle value) {
    return !checked(PyObject_RichCompare(value.ptr(), value.ptr(), Py_EQ)).is(nb::handle(Py_True));
}

bool have_same_names(const Keys &a, const Keys &b) {
    if (a.size() != b.size()) return false;
    for (uint32_t i = 0; i < a.size(); ++i)
        if (a.key(i) != b.key(i) && !(is_exact_str(a.key(i)) && is_same_name(a.key(i), b.key(i)))) return false;
    return true;
}

// Compares two answers part by part.
class Comparison {
public:
    explicit Comparison(Namespace &space) : space_(space) {}

    bool run(PyObject *a, PyObject *b) {
        add(a, b, 0);
        while (!pending_.empty()) {
            interruptible_step();
            const nb::object x = pending_.pop_owned(), y = pending_.pop_owned();
            const uint32_t depth = depths_.pop();
            if (!x.is(y) && !is_same(x, y, depth)) return false;
        }
        return true;
    }

private:
    void add(PyObject *x, PyObject *y, uint32_t depth) {
        pending_.push_borrowed(y), pending_.push_borrowed(x);
        depths_.push(depth);
    }

    // Compares two objects without their parts, which are compared later.
    bool is_same(nb::handle x, nb::handle y, uint32_t depth) {
        PyTypeObject *const type = Py_TYPE(x.ptr());
        if (type != Py_TYPE(y.ptr())) return false;
        const TypeInfo info = find_opened(x.ptr(), space_);
        if (info.registration || traits(info.kind).is_mapping)
            return info.identity == kNoIdentity && have_same_parts(x, y, info, depth);
        if (PyTuple_Check(x.ptr()) && !is_leaf(info.kind)) return have_same_items(x, y, depth);
        if (!has_plain_equality(type)) return false;
        if (checked(PyObject_RichCompareBool(x.ptr(), y.ptr(), Py_EQ))) return true;
        // NaN is the one value that differs from itself; here it is equal to another NaN.
        return differs_from_itself(x) && differs_from_itself(y);
    }

    bool have_same_items(nb::handle x, nb::handle y, uint32_t depth) {
        if (PyTuple_GET_SIZE(x.ptr()) != PyTuple_GET_SIZE(y.ptr())) return false;
        if (!is_filled(x) || !is_filled(y)) fail_unfilled();
        if (!note_pair(x, y)) return true;
        for (Py_ssize_t i = PyTuple_GET_SIZE(x.ptr()); i-- > 0;)
            add(PyTuple_GET_ITEM(x.ptr(), i), PyTuple_GET_ITEM(y.ptr(), i), depth);
        return true;
    }

    // Compares two instances of one registered class, or two mappings.
    bool have_same_parts(nb::handle x, nb::handle y, const TypeInfo &info, uint32_t depth) {
        const nb::object registration = nb::borrow(info.registration);  // code that opens them may unregister it
        const TypeInfo other = as_opened(y.ptr(), info);
        if (other.kind != info.kind) return false;
        if (!note_pair(x, y)) return true;
        // A flatten function may give a new object of the class each time.
        if (depth >= static_cast<uint32_t>(Py_GetRecursionLimit()))
            fail(PyExc_RecursionError, "Maximum recursion depth exceeded while two answers were compared.");
        Refs refs, others;
        Stack parts, other_parts;
        OpenOptions options{&space_, {}, -1, false};
        const uint32_t count = open_node(x.ptr(), info, options, parts, refs);
        if (open_node(y.ptr(), info, options, other_parts, others) != count) return false;
        if (!is_registered(info.kind)) {
            add(MappingRefs{refs.data()}.keys().order().ptr(), MappingRefs{others.data()}.keys().order().ptr(), depth);
        } else if (!is_callback(info.kind)) {
            if (!have_same_names(FieldsRefs{refs.data()}.keys(), FieldsRefs{others.data()}.keys())) return false;
            add(FieldsRefs{refs.data()}.meta(), FieldsRefs{others.data()}.meta(), depth + 1);
        } else {
            add(CustomRefs{refs.data()}.aux_data(), CustomRefs{others.data()}.aux_data(), depth + 1);
        }
        for (uint32_t i = 0; i < count; ++i) add(parts[i], other_parts[i], depth + 1);
        return true;
    }

    // Notes that a pair is compared. False if it is compared already: it comes again where parts are shared, and
    // in a cycle.
    bool note_pair(nb::handle x, nb::handle y) {
        constexpr uint32_t kFew = 32;  // comparing these pairs again costs less than remembering them
        if (++num_compared_ <= kFew) return true;
        return met_.add(x, y);
    }

    Namespace &space_;
    RefBuffer<16> pending_;        // pairs
    Buffer<uint32_t, 16> depths_;  // of the pairs: in how many registered objects each lies
    uint32_t num_compared_ = 0;
    PairSet<nb::handle, nb::handle> met_;
};

}  // namespace

bool is_same_answer(Namespace &space, PyObject *a, PyObject *b) { return a == b || Comparison(space).run(a, b); }

}  // namespace pydag
