// SPDX-License-Identifier: Apache-2.0
#include "rewrites/find_slot.h"

#include "base/equality.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/tuples.h"
#include "structure/paths.h"

#include <string>

namespace pydag {
namespace {

// The child of a node under an entry; UINT32_MAX if it has none.
uint32_t find_child(const IndexedStructure &tree, uint32_t position, nb::handle entry) {
    const Node node = tree.node(position);
    uint32_t child = position + 1;
    for (uint32_t i = 0; i < num_children(node); ++i, child = tree.behind(child)) {
        interruptible_step();
        const nb::object own = entry_of(node.kind, tree.refs(position), i);
        if (are_equal_objects(own, entry)) return child;
    }
    return UINT32_MAX;
}

// The first few entries of a node, in words.
std::string entries_text(const IndexedStructure &tree, uint32_t position) {
    constexpr uint32_t kShown = 8;
    const Node node = tree.node(position);
    const uint32_t count = num_children(node);
    if (count == 0) return "has no children";
    std::string text = count == 1 ? "has the child " : "has the children ";
    for (uint32_t i = 0; i < std::min(count, kShown); ++i)
        text += (i ? ", " : "") + text_of(short_repr(entry_of(node.kind, tree.refs(position), i)));
    return count > kShown ? text + " and " + std::to_string(count - kShown) + " more" : text;
}

}  // namespace

uint32_t find_slot(const IndexedStructure &tree, nb::handle path) {
    uint32_t slot = 0;
    if (!is_filled(path)) fail_unfilled();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(path.ptr()); ++i) {
        const uint32_t position = tree.resolve(slot);
        slot = find_child(tree, position, PyTuple_GET_ITEM(path.ptr(), i));
        if (slot != UINT32_MAX) continue;
        const std::string there = path_of(tree.structure, position);
        fail(PyExc_ValueError, "the tree has nothing at the path %U\n  %s %s.", short_repr(path).ptr(), there.c_str(),
             entries_text(tree, position).c_str());
    }
    return slot;
}

}  // namespace pydag
