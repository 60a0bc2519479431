// SPDX-License-Identifier: Apache-2.0
//
// What a user calls: a function that is compiled by `jit`.
//
// It is a function of Python's, so that it is bound, inspected and pickled as one. But its calls come straight here:
// a frame of Python's, with a tuple and a dict for the arguments, would take a good part of the time of a small call.
#pragma once

#include "base/box.h"

#include <vector>

namespace pydag {

struct JitCaller {
    nb::object flat_call;      // a FlatCall
    nb::object reasons;        // a tuple of lists: while one of them has items, `prepare` is called first
    nb::object prepare;        // () -> whether the recipes still hold
    nb::object orders;         // a dict: for keyword names, as they come, their order; () for just that one
    nb::object static_names;   // a frozenset of names of static arguments
    nb::object plain_statics;  // a dict: for a class, or a tuple of them, a dict of static leaves by value
    nb::object known_statics;  // a dict, by the id of a value: its static leaf, and () -> whether that holds, or None
    nb::object run;            // (args, kwargs): the call in Python, where the core doesn't know enough
    nb::object recover;        // (error, args, kwargs): the result in spite of it, or NotImplemented
    std::vector<Py_ssize_t> static_numbers;
    auto python_refs() {
        return std::tie(flat_call, reasons, prepare, orders, static_names, plain_statics, known_statics, run, recover);
    }
};
using JitCallerBox = Box<JitCaller>;

// TypeError where something is of another type.
nb::object make_jit_caller(JitCaller caller);
// Has the calls of a Python function go to the JitCaller in its closure.
void lead_calls_to_caller(nb::handle function);

void make_jit_caller_type();

}  // namespace pydag
