// SPDX-License-Identifier: Apache-2.0
//
// Functions of the core under their public names. A definition in Python says what a call looks like: the
// parameters, their defaults, the help; type checkers and documentation read it. The call itself comes
// straight here, without a Python frame, which would take longer than flattening a small tree.
#pragma once

#include "base/error.h"

#include <span>

namespace pydag {

// Puts the arguments of a call into the order of the definition's parameters. A parameter with the name of
// an option of FlattenOptions goes to the options; all others are the operation's own.
class PublicFunction {
public:
    static constexpr size_t kMost = 10;  // parameters

    // `names`: of all parameters, `*rests` included; `defaults`: one for each, null if the argument must be given. Runs
    // again if the package is imported again.
    void define(nb::handle definition, nb::handle names, PyObject *const *defaults, size_t num_positional_only,
                size_t num_positional, bool takes_rests);

    // Puts the operation's own arguments into `own`, the options into `options` (null where the
    // definition has no such parameter), and the tuple of what `*rests` takes into `rests`. False if
    // the arguments don't fit the parameters, or if an own argument after the first `count` ones differs
    // from its default.
    bool bind(PyObject *const *given, size_t num_given, PyObject *keywords, size_t count, PyObject **own,
              PyObject **options, nb::object &rests) const;
    // For a call that `bind` refuses: runs the definition, which raises TypeError, or handles the arguments
    // that the core's function doesn't take.
    PyObject *run_definition(PyObject *const *given, size_t num_given, PyObject *keywords) const;

private:
    size_t index_of_keyword(PyObject *name) const;  // num_parameters_ if there is none

    // Owned for the life of the process.
    PyObject *definition_ = nullptr;
    PyObject *names_[kMost] = {}, *defaults_[kMost] = {};
    size_t options_[kMost] = {};  // which option each parameter is; kNumOptions: none
    size_t num_parameters_ = 0, num_positional_only_ = 0, num_positional_ = 0;
    bool takes_rests_ = false;
};

// An operation of the core, with the two functions by which it is bound (operation.h).
struct Operation {
    const char *name;
    PyCFunction entry, public_entry;
    PublicFunction *function;
};

// Raises the TypeError for a keyword that a function doesn't take: with the name of the public function that was
// called, and the keyword that may have been meant.
[[noreturn]] void fail_unexpected(nb::handle keyword);

// Casts a function with CPython's METH_FASTCALL | METH_KEYWORDS convention to the type that a method table has.
inline PyCFunction as_function(PyObject *(*function)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *)) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

// Adds the operations to the module, and makes them known to `publish`, which is bound for Python.
void add_operations(nb::module_ &module, std::span<const Operation> operations);

}  // namespace pydag
