// SPDX-License-Identifier: Apache-2.0
//
// A PyTreeSpec is made from the state that it pickles, which is the only way that builds no objects:
//
//   (nodes, none_is_leaf, namespace)
//
// `nodes` come children first, each as (kind, number of children, node data, entries, class, number of
// leaves, number of nodes, a dict with the keys as inserted). pydag/structure/treespec.py checks that the
// installed optree means the same by it.
#include "optree_api/specs.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/tuples.h"
#include "nodes/build.h"
#include "nodes/nodes.h"
#include "structure/cursor.h"
#include "structure/node_refs.h"
#include "structure/paths.h"

#include <vector>

namespace pydag {
namespace {

constexpr size_t kMostNodes = 1 << 24;

class Unfolding {
public:
    Unfolding(const Structure &structure, nb::object open_as_optree)
        : structure_(structure), open_as_optree_(std::move(open_as_optree)), anchors_(structure.num_shared) {}

    nb::object run() {
        Nesting<Open> around;
        for (Cursor at(structure_); at.is_at_node(); at.step()) {
            interruptible_step();
            around.add({at.position(), at.number(), at.refs(), rows_.size(), num_leaves_}, num_children(at.node()),
                       [&](const Open &done) { close(done); });
        }
        const nb::object rows = rows_.take_tuple();
        nb::object none_is_leaf = nb::borrow(structure_.none_is_leaf ? Py_True : Py_False);
        return tuple_of(rows, std::move(none_is_leaf), nb::borrow(structure_.namespace_));
    }

private:
    // A node whose children are being written.
    struct Open {
        uint32_t position, number;
        PyObject *const *refs;
        size_t first_row;
        uint64_t first_leaf;
    };
    // The rows of an anchor, which are written again for each of its aliases.
    struct Rows {
        size_t begin, end;
        uint64_t num_leaves;
    };

    void repeat(const Rows &rows) {
        if (rows_.size() + (rows.end - rows.begin) > kMostNodes)
            fail(PyExc_ValueError,
                 "The unfolded tree has more than %zu nodes, which is too large for a PyTreeSpec.\n"
                 "  A PyTreeSpec writes what is shared out at every path: keep the PyDagSpec.",
                 kMostNodes);
        rows_.reserve(rows.end - rows.begin);
        for (size_t i = rows.begin; i < rows.end; ++i) rows_.push_borrowed(rows_[i]);
        num_leaves_ += rows.num_leaves;
    }

    void close(const Open &done) {
        const Node node = structure_.nodes[done.position];
        if (node.is_alias()) return repeat(anchors_[node.count]);
        num_leaves_ += node.is_leaf();
        if (node.is_leaf() && leaf_row_.is_valid()) rows_.push_borrowed(leaf_row_.ptr());
        else rows_.push_new(make_row(node, done));
        if (node.is_leaf()) leaf_row_ = nb::borrow(rows_.back());
        if (node.is_anchor) anchors_[done.number] = {done.first_row, rows_.size(), num_leaves_ - done.first_leaf};
    }

    nb::object make_row(Node node, const Open &open) {
        nb::object data = node_data(node.kind, open.refs), entries = nb::none(), type = nb::none(), keys = nb::none();
        if (is_registered(node.kind)) {
            const nb::object opened = open_as_optree(node, open);
            type = node_registration(open.refs).type;
            data = nb::borrow(PyTuple_GET_ITEM(opened.ptr(), 0));
            entries = nb::borrow(PyTuple_GET_ITEM(opened.ptr(), 1));
        }
        if (find_role(node.kind, Role::kSortedKeys) < kMostRefs) {
            keys = checked(PyDict_New());
            const Keys &own = MappingRefs{open.refs}.keys();
            for (uint32_t i = 0; i < own.size(); ++i) checked(PyDict_SetItem(keys.ptr(), own.inserted_key(i), Py_None));
        }
        const uint64_t num_leaves = num_leaves_ - open.first_leaf, num_nodes = rows_.size() - open.first_row + 1;
        return nb::make_tuple(traits(node.kind).tree_kind, node.count, data, entries, type, num_leaves, num_nodes,
                              keys);
    }

    // (aux_data, entries) of a registered node, as optree would give them. If pydag opens the class by its
    // fields, optree has other aux_data for it; to get that, an instance with a bare object in each of its slots
    // is given to optree's flatten function.
    nb::object open_as_optree(Node node, const Open &open) {
        const Registration &registration = node_registration(open.refs);
        const bool has_functions = traits(node.kind).entries == Entries::kCustom;
        nb::object given = has_functions ? tuple_of(nb::borrow(CustomRefs{open.refs}.aux_data()),
                                                    nb::borrow(CustomRefs{open.refs}.entries()))
                                         : empty_node(node, open.refs);
        nb::object answer = call(open_as_optree_, registration.type, registration.flatten, registration.unflatten,
                                 nb::handle(structure_.namespace_), given);
        if (PyUnicode_Check(answer.ptr()))
            fail(PyExc_ValueError, "%U\n  at %s", answer.ptr(), path_of(structure_, open.position).c_str());
        return answer;
    }

    // (object, what stands in its slots)
    static nb::object empty_node(Node node, PyObject *const *refs) {
        Stack parts;
        for (uint32_t i = 0; i < node.count; ++i)
            parts.push_new(call(reinterpret_cast<PyObject *>(&PyBaseObject_Type)));
        nb::object slots = tuple_of(parts.data(), parts.size());
        MadeOnce once;
        return tuple_of(build_node(node.kind, refs, parts, 0, once), std::move(slots));
    }

    const Structure &structure_;
    const nb::object open_as_optree_;  // optree's half
    RefBuffer<96> rows_;
    std::vector<Rows> anchors_;  // of each anchor, by its number
    nb::object leaf_row_;
    uint64_t num_leaves_ = 0;  // so far
};

}  // namespace

nb::object to_treespec(const Structure &structure) {
    const nb::object helpers = nb::module_::import_("pydag.sharing.deref");
    const nb::object from_state = helpers.attr("from_state"), open_as_optree = helpers.attr("open_as_optree");
    return call(from_state, Unfolding(structure, open_as_optree).run());
}

}  // namespace pydag
