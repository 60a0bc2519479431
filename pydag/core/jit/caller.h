// SPDX-License-Identifier: Apache-2.0
//
// What a user calls: a function that is compiled by `jit`.
//
// It is a Python function, so that it is bound, inspected and pickled as such. But its calls come straight here: a
// Python frame, with a tuple and a dict for the arguments, would take a good part of the time of a small call.
#pragma once

#include "base/box.h"

#include <vector>

namespace pydag {

struct JitCaller {
    nb::object plans;         // a CallPlans
    nb::object unties;        // a list, not empty once the function has untied on purpose; then each call ...
    nb::object note_untie;    // ... calls this, for whoever traces it: () -> None
    nb::object places;        // a dict: the places of keyword arguments in the signature; empty if any name is allowed
    nb::object static_names;  // a frozenset of names of static arguments
    nb::object run;           // (args, kwargs): the call in Python, if no plan fits
    nb::object recover;       // (error, args, kwargs): the result in spite of it, or NotImplemented
    std::vector<Py_ssize_t> static_numbers;
    auto python_refs() { return std::tie(plans, unties, note_untie, places, static_names, run, recover); }
};
using JitCallerBox = Box<JitCaller>;

// TypeError if a member has another type.
nb::object make_jit_caller(JitCaller caller);
// Makes calls of a Python function go to the JitCaller in its closure.
void lead_calls_to_caller(nb::handle function);

void make_jit_caller_type();

}  // namespace pydag
