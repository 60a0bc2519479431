// SPDX-License-Identifier: Apache-2.0
//
// How functions of the core are bound: without nanobind, because a small tree is flattened in less time than its
// dispatch takes. A function's C++ parameters say which arguments it has; pydag/_core.pyi says what Python may pass.
// Each function is bound twice. As a function of the core it takes its own arguments by position, and those of
// FlattenOptions as keywords. Under its public name it takes the parameters that its definition in Python has
// (public_function.h).
#pragma once

#include "bind/public_function.h"
#include "spec/spec.h"
#include "walks/options.h"

namespace pydag {

// For which leaves an operation runs, its last own argument. If it is no None and no class, the definition is called.
struct Select : nb::handle {};

template <class>
struct Parameters;
template <class Result, class... All>
struct Parameters<Result (*)(All...)> {
    static constexpr bool have_options = (std::is_same_v<std::remove_cvref_t<All>, FlattenOptions> || ... || false);
    static constexpr bool have_select = (std::is_same_v<All, Select> || ... || false);
    static constexpr size_t count = sizeof...(All) - have_options;  // without the options, which come last
    template <size_t i>
    using At = std::remove_cvref_t<std::tuple_element_t<i, std::tuple<All...>>>;
};
template <auto operation>
using ParametersOf = Parameters<std::decay_t<decltype(operation)>>;

using Arguments = PyObject *const *;

// The value for a parameter of type T. The caller owns the argument as long as the function runs.
template <class T>
decltype(auto) converted(PyObject *argument) {
    if constexpr (std::is_same_v<T, nb::handle> || std::is_same_v<T, Select>) return T{argument};
    else if constexpr (std::is_same_v<T, Structure>) return spec_of(argument).structure();
    else {
        T value{};
        if (!nb::try_cast(nb::handle(argument), value))
            fail(PyExc_TypeError, "an argument has the wrong type: %U", short_repr(argument).ptr());
        return value;
    }
}

template <class Function>
nb::object result_of(Function function) {
    using Result = decltype(function());
    if constexpr (std::is_void_v<Result>) return function(), nb::none();
    else if constexpr (std::is_same_v<Result, nb::object>) return function();
    else return nb::cast(function());
}

// `asks_names`: see FlattenOptions.
template <auto operation, bool asks_names>
nb::object run(Arguments own, Arguments values) {
    using Own = ParametersOf<operation>;
    return [&]<size_t... i>(std::index_sequence<i...>) {
        if constexpr (Own::have_options) {
            FlattenOptions options = FlattenOptions::parse(values);
            options.asks_names = asks_names;
            return result_of(
                [&] { return operation(converted<typename Own::template At<i>>(own[i])..., std::move(options)); });
        } else {
            return result_of([&] { return operation(converted<typename Own::template At<i>>(own[i])...); });
        }
    }(std::make_index_sequence<Own::count>());
}

template <auto operation, bool asks_names>
PyObject *core_entry(PyObject *, Arguments given, Py_ssize_t num_given, PyObject *keywords) {
    constexpr size_t kCount = ParametersOf<operation>::count;
    return slot<PyObject *>(nullptr, [&] {
        if (num_given != kCount) fail(PyExc_TypeError, "expected %zu arguments, got %zd", kCount, num_given);
        PyObject *options[kNumOptions] = {};
        const size_t num_keywords = keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0;
        for (size_t i = 0; i < num_keywords; ++i) {
            // GCOVR_EXCL_START: gcov counts such lambdas for one of the templates alone
            PyObject *const name = PyTuple_GET_ITEM(keywords, i);
            const size_t index = ParametersOf<operation>::have_options ? index_of_option(name) : kNumOptions;
            if (index == kNumOptions) fail_unexpected(name);
            // GCOVR_EXCL_STOP
            options[index] = given[kCount + i];
        }
        return run<operation, asks_names>(given, options).release().ptr();
    });
}

template <auto operation, bool asks_names>
inline constinit PublicFunction public_function = {};

template <auto operation, bool asks_names>
PyObject *public_entry(PyObject *, Arguments given, Py_ssize_t num_given, PyObject *keywords) {
    const PublicFunction &function = public_function<operation, asks_names>;
    PyObject *bound[PublicFunction::kMost], *options[kNumOptions];
    nb::object rests;
    return slot<PyObject *>(nullptr, [&] {
        // GCOVR_EXCL_START: as above
        constexpr size_t kCount = ParametersOf<operation>::count;
        bool fits = function.bind(given, static_cast<size_t>(num_given), keywords, kCount, bound, options, rests);
        if constexpr (ParametersOf<operation>::have_select)
            fits = fits && (bound[kCount - 1] == Py_None || PyType_CheckExact(bound[kCount - 1]));
        if (!fits) [[unlikely]]
            return function.run_definition(given, static_cast<size_t>(num_given), keywords);
        return run<operation, asks_names>(bound, options).release().ptr();
        // GCOVR_EXCL_STOP
    });
}

template <auto operation, bool asks_names = true>
Operation operation_of(const char *name) {
    return {name, as_function(core_entry<operation, asks_names>), as_function(public_entry<operation, asks_names>),
            &public_function<operation, asks_names>};
}
// An operation on trees in which nobody wants paths.
template <auto operation>
Operation nameless(const char *name) {
    return operation_of<operation, false>(name);
}

}  // namespace pydag
