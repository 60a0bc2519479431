// SPDX-License-Identifier: Apache-2.0
#include "bind/public_function.h"

#include "base/tuples.h"
#include "bind/bind.h"
#include "bind/operation.h"

#include <cstring>
#include <vector>

namespace pydag {
namespace {

// Lives as long as the process, as the functions do.
std::vector<Operation> &all_operations() {
    static auto *const rows = new std::vector<Operation>;
    return *rows;
}

const Operation &find_operation(nb::handle name) {
    for (const Operation &row : all_operations())
        if (PyUnicode_CompareWithASCIIString(name.ptr(), row.name) == 0) return row;
    fail(PyExc_ValueError, "the core has no function %R to make public", name.ptr());
}

// A copy that is never freed, because a builtin function refers to its name and help for ever.
const char *lasting_text(nb::handle text) {
    Py_ssize_t size;
    const char *const utf8 = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (!utf8) nb::raise_python_error();
    auto *const copy = new char[static_cast<size_t>(size) + 1];
    std::memcpy(copy, utf8, static_cast<size_t>(size) + 1);
    return copy;
}

// Makes the public function of an operation, from what `pydag.public.compiled` read from its definition.
nb::object publish(nb::str core_name, nb::object definition, nb::tuple names, nb::tuple defaults,
                   size_t num_positional_only, size_t num_positional, bool takes_rests, nb::str help) {
    const Operation &row = find_operation(core_name);
    if (names.size() != defaults.size() || names.size() > PublicFunction::kMost)
        fail(PyExc_ValueError, "%zu parameters, %zu defaults, at most %zu", names.size(), defaults.size(),
             PublicFunction::kMost);
    // For each parameter a tuple with its default, or an empty tuple if it has none.
    PyObject *values[PublicFunction::kMost];
    for (size_t i = 0; i < defaults.size(); ++i) values[i] = item_or_null(defaults[i], 0);
    auto *const method = new PyMethodDef{lasting_text(definition.attr("__name__")), row.public_entry,
                                         METH_FASTCALL | METH_KEYWORDS, lasting_text(help)};
    nb::object module_name = definition.attr("__module__");
    nb::object function = checked(PyCFunction_NewEx(method, nullptr, module_name.ptr()));
    row.function->define(definition, names, values, num_positional_only, num_positional, takes_rests);
    return function;
}

}  // namespace

void PublicFunction::define(nb::handle definition, nb::handle names, PyObject *const *defaults,
                            size_t num_positional_only, size_t num_positional, bool takes_rests) {
    num_parameters_ = static_cast<size_t>(PyTuple_GET_SIZE(names.ptr()));
    for (size_t i = 0; i < num_parameters_; ++i) {
        names_[i] = interned(PyTuple_GET_ITEM(names.ptr(), i)).release().ptr();
        defaults_[i] = defaults[i] ? incref(defaults[i]) : nullptr;
        options_[i] = index_of_option(names_[i]);
    }
    num_positional_only_ = num_positional_only;
    num_positional_ = num_positional;
    takes_rests_ = takes_rests;
    definition_ = incref(definition.ptr());
}

size_t PublicFunction::index_of_keyword(PyObject *name) const {
    for (size_t i = num_positional_only_; i < num_parameters_; ++i)
        if (is_same_name(names_[i], name) && !(takes_rests_ && i == num_positional_)) return i;
    return num_parameters_;
}

bool PublicFunction::bind(PyObject *const *given, size_t num_given, PyObject *keywords, size_t count, PyObject **own,
                          PyObject **options, nb::object &rests) const {
    PyObject *bound[kMost];
    const size_t num_by_position = std::min(num_given, num_positional_);
    for (size_t i = 0; i < num_by_position; ++i) bound[i] = given[i];
    for (size_t i = num_by_position; i < num_parameters_; ++i) bound[i] = defaults_[i];
    if (takes_rests_) {
        const size_t num_rests = num_given - num_by_position;
        rests = checked(PyTuple_New(static_cast<Py_ssize_t>(num_rests)));
        for (size_t i = 0; i < num_rests; ++i) PyTuple_SET_ITEM(rests.ptr(), i, incref(given[num_by_position + i]));
        bound[num_positional_] = rests.ptr();
    } else if (num_given > num_by_position) {
        return false;
    }
    const size_t num_keywords = keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0;
    for (size_t i = 0; i < num_keywords; ++i) {
        const size_t index = index_of_keyword(PyTuple_GET_ITEM(keywords, i));
        if (index == num_parameters_ || index < num_by_position) return false;
        bound[index] = given[num_given + i];
    }
    for (size_t i = num_by_position; i < num_positional_; ++i)
        if (!bound[i]) return false;
    std::fill_n(options, kNumOptions, nullptr);
    size_t num_own = 0;
    for (size_t i = 0; i < num_parameters_; ++i) {
        if (options_[i] < kNumOptions) options[options_[i]] = bound[i];
        else if (num_own < count) own[num_own++] = bound[i];
        else if (bound[i] != defaults_[i]) return false;
    }
    return true;
}

PyObject *PublicFunction::run_definition(PyObject *const *given, size_t num_given, PyObject *keywords) const {
    return PyObject_Vectorcall(definition_, given, num_given, keywords);
}

void add_operations(nb::module_ &module, std::span<const Operation> operations) {
    auto *const table = new PyMethodDef[operations.size() + 1]();  // the functions refer to it for ever
    for (size_t i = 0; i < operations.size(); ++i)
        table[i] = {operations[i].name, operations[i].entry, METH_FASTCALL | METH_KEYWORDS, nullptr};
    checked(PyModule_AddFunctions(module.ptr(), table));
    all_operations().insert(all_operations().end(), operations.begin(), operations.end());
}

void fail_unexpected(nb::handle keyword) {
    call(checked(PyObject_GetAttrString(nb::module_::import_("pydag.public.options").ptr(), "raise_unexpected")),
         keyword);
    fail(PyExc_TypeError, "got an unexpected keyword argument %R", keyword.ptr());
}

void bind_publish(nb::module_ &module) {
    const Operation operations[] = {operation_of<publish>("publish")};
    add_operations(module, operations);
}

}  // namespace pydag
