// SPDX-License-Identifier: Apache-2.0
//
// Functions of the core under their public names. What a call looks like is said by a definition in
// Python, which type checkers and documentation read: its parameters, their defaults, its help. The
// call itself comes straight here, without a Python frame, which would take longer than a small tree.
#pragma once

#include "bind/method.h"

namespace pydag {

// How the arguments of a call are brought into the order of the definition's parameters.
class PublicFunction {
public:
    static constexpr size_t kMost = 10;  // parameters

    // `names`: of the parameters, that of `*rests` included; `defaults`: of each of them, null where it
    // must be given. A package that is imported anew defines its functions anew.
    void define(nb::handle definition, nb::handle names, PyObject *const *defaults, size_t num_positional_only,
                size_t num_positional, bool takes_rests);

    // Puts the arguments into `bound`, and the tuple of those that `*rests` takes into `rests`. False
    // if they don't fit the parameters, or if one behind the first `count` has not its default.
    bool bind(Arguments given, size_t num_given, PyObject *keywords, size_t count, PyObject **bound,
              nb::object &rests) const;
    // For a call that `bind` refuses: runs the definition, which raises TypeError, or does what the
    // core alone doesn't do.
    PyObject *run_definition(Arguments given, size_t num_given, PyObject *keywords) const;

private:
    size_t place_of_keyword(PyObject *name) const;  // num_parameters_ if there is none

    // Owned for the life of the process.
    PyObject *definition_ = nullptr;
    PyObject *names_[kMost] = {}, *defaults_[kMost] = {};
    size_t num_parameters_ = 0, num_positional_only_ = 0, num_positional_ = 0;
    bool takes_rests_ = false;
};

// What is to be known of a function of the core that can be made public.
struct Publishable {
    const char *name;
    PublicFunction *function;
    PyCFunction entry;
};

template <size_t count, nb::object (*operation)(Arguments)>
inline constinit PublicFunction public_function = {};

template <size_t count, nb::object (*operation)(Arguments)>
PyObject *public_entry(PyObject *, Arguments given, Py_ssize_t num_given, PyObject *keywords) {
    const PublicFunction &function = public_function<count, operation>;
    PyObject *bound[PublicFunction::kMost];
    nb::object rests;
    try {
        if (!function.bind(given, static_cast<size_t>(num_given), keywords, count, bound, rests)) [[unlikely]]
            return function.run_definition(given, static_cast<size_t>(num_given), keywords);
        return operation(bound).release().ptr();
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

template <size_t count, nb::object (*operation)(Arguments)>
Publishable publishable(const char *name) {
    return {name, &public_function<count, operation>,
            reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(public_entry<count, operation>))};
}

// Makes `rows` known to `publish`, which is bound for Python.
void add_publishables(const Publishable *rows, size_t count);

}  // namespace pydag
