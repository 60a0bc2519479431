// SPDX-License-Identifier: Apache-2.0
//
// A spec as a key under which a compiled function is found. Two keys are equal if the specs are interchangeable
// (structure/compare.h). A key has the hash of its spec.
#pragma once

#include "base/box.h"

namespace pydag {

struct SpecKey {
    nb::object spec;  // a PyDagSpec
    auto python_refs() { return std::tie(spec); }
};
static_assert(sizeof(SpecKey) == sizeof(nb::object), "list the new member in python_refs()");
using SpecKeyBox = Box<SpecKey>;

// `maker`: the function that makes a key of a spec, for pickles.
void make_spec_key_type(nb::object maker);

}  // namespace pydag
