// SPDX-License-Identifier: Apache-2.0
#include "walks/asking.h"

#include "structure/node_refs.h"

#include <algorithm>

namespace pydag {
namespace {

// Whether two references say the same of a node.
bool is_same_ref(PyObject *a, PyObject *b) {
    if (a == b) return true;
    if (!KeysBox::check(a) || !KeysBox::check(b)) return false;
    const Keys &x = KeysBox::of(a), &y = KeysBox::of(b);
    return x.num_sorted == y.num_sorted && have_same_order(x, y) &&
           std::equal(x.inserted(), x.inserted() + x.size(), y.inserted());
}

}  // namespace

PyObject *const *Asking::ask(PyObject *object, Node expected, PyObject *const *refs, OpenOptions &options,
                             BorrowedFrame &level, Levels &levels) {
    const nb::object owned = nb::borrow(object);
    has_asked_ = true;
    if (!own_all(level, levels)) return nullptr;
    const TypeInfo info = find_opened(object, *options.space);
    // Another class may differ in whether its instances have an identity, which the walk has asked the structure.
    if (info.kind != expected.kind || info.registration != NodeRefs{expected.kind, refs}.find(Role::kRegistration))
        return nullptr;
    const NodeAnswers::Answer *const answer = answers_.ask(object, info, options);
    if (!answer || answer->num_children() != expected.count || generation_ != cache_generation()) return nullptr;
    for (uint32_t i = 0; i < num_refs(expected); ++i) {
        PyObject *const said = NodeRefs{info.kind, answers_.refs(*answer)}.ref(i);
        if (!is_same_ref(NodeRefs{expected.kind, refs}.ref(i), said))
            other_refs_.push_back({static_cast<uint32_t>(refs + i - structure_.refs), nb::borrow(said)});
    }
    return NodeAnswers::children(*answer);
}

// The levels below one whose children are owned were owned with it.
bool Asking::own_all(BorrowedFrame &level, Levels &levels) {
    if (!own(level)) return false;
    for (size_t i = levels.size(); i-- > 0 && !levels[i].is_owned();)
        if (!own(levels[i])) return false;
    return true;
}

bool Asking::own(BorrowedFrame &level) {
    if (level.next == level.end || level.is_owned()) return true;
    if (std::find(level.next, level.end, nullptr) != level.end) return false;
    if (waiting_.empty()) waiting_.reserve(structure_.num_nodes);  // as many slots as there are: they don't move
    const auto *const first = waiting_.data() + waiting_.size();
    while (level.next != level.end) waiting_.push_borrowed(*level.next++);
    level.next = first;
    level.end = waiting_.data() + waiting_.size();
    level.state |= BorrowedFrame::kIsOwned;
    return true;
}

}  // namespace pydag
