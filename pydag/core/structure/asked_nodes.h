// SPDX-License-Identifier: Apache-2.0
//
// Which nodes of a structure a walk has to ask even if it knows what to expect: Python code opens them, or sorts their
// keys.
#pragma once

#include "structure/cursor.h"
#include "structure/node_refs.h"

namespace pydag {

inline bool must_ask(Node node, PyObject *const *refs) {
    if (is_callback(node.kind)) return !node_registration(refs).stand_in;
    if (!traits(node.kind).is_mapping) return false;
    const Keys &keys = MappingRefs{refs}.keys();
    return !keys.has_constant_hashes || keys.size() != node.count;  // a kept structure may be without the keys
}

inline bool must_ask_any(const Structure &structure) {
    for (Cursor at(structure); at.is_at_node(); at.step())
        if (must_ask(at.node(), at.refs())) return true;
    return false;
}

}  // namespace pydag
