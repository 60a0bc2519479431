// SPDX-License-Identifier: Apache-2.0
//
// Errors in a description of a structure that came from outside: a pickled state, or records of nodes.
#pragma once

#include "base/error.h"

namespace pydag {

class Malformed : public Complaint {
public:
    explicit Malformed(std::string text) : Complaint(PyExc_ValueError, std::move(text)) {}
};

inline void require(bool condition, const char *why) {
    if (!condition) throw Malformed(why);
}

// Runs `body`; where that finds something malformed, the error names the field: "nodes[3]: ...".
template <class Body>
decltype(auto) in_field(const char *list, size_t i, Body body) {
    try {
        return body();
    } catch (const Malformed &error) {
        throw Malformed(std::string(list) + "[" + std::to_string(i) + "]: " + error.text());
    }
}

}  // namespace pydag
