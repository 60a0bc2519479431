// SPDX-License-Identifier: Apache-2.0
//
// Functions of the core under their public names. What a call looks like is said by a definition in
// Python, which type checkers and documentation read: its parameters, their defaults, its help. The
// call itself comes straight here, without a Python frame, which would take longer than a small tree.
#pragma once

#include "base/error.h"

namespace pydag {

// How the arguments of a call are brought into the order of the definition's parameters. Those that
// are called as an option of FlattenOptions go to the options, the others are the operation's own.
class PublicFunction {
public:
    static constexpr size_t kMost = 10;  // parameters

    // `names`: of the parameters, that of `*rests` included; `defaults`: of each of them, null where it
    // must be given. A package that is imported anew defines its functions anew.
    void define(nb::handle definition, nb::handle names, PyObject *const *defaults, size_t num_positional_only,
                size_t num_positional, bool takes_rests);

    // Puts the operation's own arguments into `own`, the options into `options` (null where the
    // definition has no such parameter), and the tuple of what `*rests` takes into `rests`. False if
    // the arguments don't fit the parameters, or if one behind the first `count` own ones has not its
    // default.
    bool bind(PyObject *const *given, size_t num_given, PyObject *keywords, size_t count, PyObject **own,
              PyObject **options, nb::object &rests) const;
    // For a call that `bind` refuses: runs the definition, which raises TypeError, or does what the
    // core alone doesn't do.
    PyObject *run_definition(PyObject *const *given, size_t num_given, PyObject *keywords) const;

private:
    size_t place_of_keyword(PyObject *name) const;  // num_parameters_ if there is none

    // Owned for the life of the process.
    PyObject *definition_ = nullptr;
    PyObject *names_[kMost] = {}, *defaults_[kMost] = {};
    size_t options_[kMost] = {};  // which option each parameter is; kNumOptions: none
    size_t num_parameters_ = 0, num_positional_only_ = 0, num_positional_ = 0;
    bool takes_rests_ = false;
};

// An operation of the core: bound as it is, and ready to be made public.
struct Operation {
    const char *name;
    PyCFunction entry, public_entry;
    PublicFunction *function;
};

// A function of CPython's calling convention for arrays with keywords, as a method table has it.
inline PyCFunction as_function(PyObject *(*function)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *)) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

// Adds the operations to the module, and makes them known to `publish`, which is bound for Python.
void add_operations(nb::module_ &module, const Operation *operations, size_t count);

}  // namespace pydag
