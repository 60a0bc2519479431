// SPDX-License-Identifier: Apache-2.0
#include "walks/walks.h"

#include "base/interrupt.h"
#include "base/pair_set.h"
#include "nodes/nodes.h"
#include "structure/cursor.h"
#include "structure/indexed_structure.h"
#include "structure/paths.h"

#include <optional>

namespace pydag {
namespace {

class Matcher {
public:
    Matcher(const Structure &structure, Answers &answers, Leaves &found, const Roots &roots)
        : structure_(structure),
          answers_(answers),
          found_(found),
          roots_(&roots),
          space_(Namespace::get(structure.namespace_)) {}

    void run(PyObject *tree) {
        walk(Cursor(structure_), tree, nullptr);
        if (!pending_.empty()) index_.emplace(structure_);
        for (size_t next = 0; next < pending_.size(); ++next) {
            const Alias alias = pending_[next];
            const uint32_t anchor = index_->anchors[alias.number];
            if (walked_.has(anchor, alias.object)) continue;
            walk(Cursor(structure_, index_->subtrees[anchor].begin, alias.number), alias.object.ptr(), &alias);
        }
    }

private:
    // An alias at which the tree holds another object than at the anchor.
    struct Alias {
        uint32_t node, number;
        nb::object object;
    };

    // Walks the subtree at `at` together with `tree`. With `alias`, the answers are compared with those
    // found before; without, they are collected.
    void walk(Cursor at, PyObject *tree, const Alias *alias) {
        Stack stack;
        stack.push_borrowed(tree);
        try {
            while (!stack.empty()) {
                current_ = at.position();
                interruptible_step();
                nb::object object = stack.pop_owned();
                const Node node = at.node();
                if (node.is_anchor && !alias) first_.push_borrowed(object.ptr());
                if (alias && num_children(node) > 0 && !note_walked(at, object)) {
                    at = Cursor(structure_, index_->subtrees[current_].end, index_->subtrees[current_].next_number);
                    continue;
                }
                if (node.is_leaf()) {
                    if (alias) check_answer(at, object, *alias);
                    else found_.push_new(std::move(object));
                } else if (node.is_alias()) {
                    if (!object.is(first_[node.count]))
                        pending_.push_back({at.position(), node.count, std::move(object)});
                } else {
                    match_node(node, at.refs(), object, *space_, stack);
                }
                at.step();
            }
        } catch (...) {
            rethrow_at([&] { return path(alias); }, "matching");
        }
    }

    // Below an alias: notes that this object is walked at this node. False if it was before.
    bool note_walked(const Cursor &at, nb::handle object) {
        if (at.node().is_anchor && object.is(first_[at.number()])) return false;
        return walked_.add(at.position(), object);
    }

    void check_answer(const Cursor &at, nb::handle object, const Alias &alias) {
        PyObject *const first = found_[at.leaf()];
        if (first == object.ptr() || answers_.accept(at.leaf(), first, object.ptr())) return;
        roots_ = &no_roots_;
        const bool has_jax = PyDict_GetItemString(PyImport_GetModuleDict(), "pydag.jaxinterop") != nullptr;
        fail(sharing_error,
             "the trees are shared differently\n  first tree:  %s and %s are one object\n"
             "  other tree:  they are two: %U and %U\n"
             "  Equal copies: make them one object, with pydag.retie(spec, other). Halves of one %s: add them\n"
             "  up, with pydag.retie(spec, other, combine=%s. Where\n"
             "  objects are one by accident: pydag.untie(tree); or leaves without identity, by identity=\"nodes\".",
             path_of(structure_, at.position()).c_str(), path(&alias).c_str(), short_repr(first).ptr(),
             short_repr(object).ptr(), has_jax ? "gradient" : "sum",
             has_jax ? "jnp.add), or take pydag.jaxinterop.grad" : "operator.add)");
    }

    // The path to the current node; below an alias it goes through the alias.
    std::string path(const Alias *alias) const {
        Steps steps = steps_to(structure_, current_);
        if (alias) {
            const size_t depth = steps_to(structure_, index_->anchors[alias->number]).size();
            Steps through = steps_to(structure_, alias->node);
            through.insert(through.end(), steps.begin() + static_cast<std::ptrdiff_t>(depth), steps.end());
            steps = std::move(through);
        }
        return roots_->path(steps);
    }

    const Structure &structure_;
    Answers &answers_;
    Leaves &found_;
    const Roots no_roots_;
    const Roots *roots_;
    const NamespaceRef space_;
    std::optional<IndexedStructure> index_;  // once an alias is walked
    RefBuffer<16> first_;                    // the object at each anchor, by its number
    PairSet<uint32_t, nb::handle> walked_;   // (node, object) that an alias led to
    std::vector<Alias> pending_;
    uint32_t current_ = 0;
};

struct EqualAnswers final : Answers {
    explicit EqualAnswers(NamespaceRef space) : space(std::move(space)) {}
    bool accept(uint32_t, PyObject *first, PyObject *other) override { return is_same_answer(*space, first, other); }
    const NamespaceRef space;
};

}  // namespace

void match(const Structure &structure, PyObject *tree, Leaves &found, ClassesOf classes, const Roots &roots) {
    if (classes == ClassesOf::kThisCall && match_known(structure, tree, found, nullptr)) return;
    const NamespaceRef space = Namespace::get(structure.namespace_);
    if (classes == ClassesOf::kAnyTime && match_known(structure, tree, found, space.get())) return;
    EqualAnswers answers(space);
    match(structure, tree, found, answers, roots);
}

void match_rest(const Structure &structure, nb::handle rests, Py_ssize_t number, Leaves &found, ClassesOf classes) {
    PyObject *const tree = PyTuple_GET_ITEM(rests.ptr(), number);
    if (PyTuple_GET_SIZE(rests.ptr()) == 1) return match(structure, tree, found, classes);
    const nb::object name = checked(PyUnicode_FromFormat("rests[%zd]", number));
    try {
        match(structure, tree, found, classes, Roots(name));
    } catch (nb::python_error &error) {
        // The paths in that error are paths of both trees.
        if (error.matches(sharing_error))
            add_note(nb::borrow(error.value()), "The tree that doesn't fit is " + text_of(name) + ".");
        throw;
    }
}

void match(const Structure &structure, PyObject *tree, Leaves &found, Answers &answers, const Roots &roots) {
    Matcher(structure, answers, found, roots).run(tree);
}

}  // namespace pydag
