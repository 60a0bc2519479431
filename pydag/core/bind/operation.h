// SPDX-License-Identifier: Apache-2.0
//
// How the operations on trees are bound: without nanobind, because a small tree is flattened in less time
// than its dispatch takes. Each operation is bound twice. As a function of the core it takes its own
// arguments by position, and those of FlattenOptions as keywords. Under its public name it takes the
// parameters that its definition in Python has (public_function.h).
#pragma once

#include "bind/public_function.h"
#include "walks/options.h"

namespace pydag {

using Arguments = PyObject *const *;

// `operation` is a function of (Arguments), or of (Arguments, const FlattenOptions &).
template <auto operation>
inline constexpr bool takes_options = !std::is_invocable_v<decltype(operation), Arguments>;

template <auto operation>
nb::object run(Arguments own, Arguments options) {
    if constexpr (takes_options<operation>) return operation(own, FlattenOptions::parse(options));
    else return operation(own);
}

template <size_t count, auto operation>
PyObject *entry(PyObject *, Arguments given, Py_ssize_t num_given, PyObject *keywords) {
    try {
        if (num_given != count) fail(PyExc_TypeError, "expected %zu arguments, got %zd", count, num_given);
        PyObject *options[kNumOptions] = {};
        const size_t num_keywords = keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0;
        for (size_t i = 0; i < num_keywords; ++i) {
            PyObject *const name = PyTuple_GET_ITEM(keywords, i);
            const size_t index = takes_options<operation> ? index_of_option(name) : kNumOptions;
            if (index == kNumOptions) fail_unexpected(name);
            options[index] = given[count + i];
        }
        return run<operation>(given, options).release().ptr();
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

template <size_t count, auto operation>
inline constinit PublicFunction public_function = {};

template <size_t count, auto operation>
PyObject *public_entry(PyObject *, Arguments given, Py_ssize_t num_given, PyObject *keywords) {
    const PublicFunction &function = public_function<count, operation>;
    PyObject *bound[PublicFunction::kMost], *options[kNumOptions];
    nb::object rests;
    try {
        if (!function.bind(given, static_cast<size_t>(num_given), keywords, count, bound, options, rests)) [[unlikely]]
            return function.run_definition(given, static_cast<size_t>(num_given), keywords);
        return run<operation>(bound, options).release().ptr();
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

// An operation with `count` arguments of its own.
template <size_t count, auto operation>
Operation operation_of(const char *name) {
    return {name, as_function(entry<count, operation>), as_function(public_entry<count, operation>),
            &public_function<count, operation>};
}

}  // namespace pydag
