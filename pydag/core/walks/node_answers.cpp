// SPDX-License-Identifier: Apache-2.0
#include "walks/node_answers.h"

#include "structure/node_refs.h"

#include <algorithm>
#include <new>

namespace pydag {
namespace {

// Whether a structure may have either of two references.
bool is_same_ref(PyObject *a, PyObject *b) {
    if (a == b) return true;
    if (!KeysBox::check(a) || !KeysBox::check(b)) return false;
    const Keys &x = KeysBox::of(a), &y = KeysBox::of(b);
    return x.num_sorted == y.num_sorted && have_same_order(x, y) &&
           std::equal(x.inserted(), x.inserted() + x.size(), y.inserted());
}

// Takes references to the children of an open node that are still to be visited. `num_slots` is the number of all
// slots, so `waiting` never moves. False if a slot isn't filled.
bool own(BorrowedFrame &level, RefBuffer<1> &waiting, uint32_t num_slots) {
    if (level.next == level.end || level.is_owned()) return true;
    if (std::find(level.next, level.end, nullptr) != level.end) return false;
    if (waiting.empty()) waiting.reserve(num_slots);
    const auto *const first = waiting.data() + waiting.size();
    while (level.next != level.end) waiting.push_borrowed(*level.next++);
    level.next = first;
    level.end = waiting.data() + waiting.size();
    level.state |= BorrowedFrame::kIsOwned;
    return true;
}

}  // namespace

PyObject *const *NodeAnswers::ask(const Structure &structure, PyObject *object, Node expected, PyObject *const *refs,
                                  OpenOptions &options, BorrowedFrame &level, Levels &levels) {
    const nb::object owned = nb::borrow(object);
    const uint64_t generation = cache_generation();
    if (!own_all(structure, level, levels)) return nullptr;
    const TypeInfo info = find_opened(object, *options.space);
    // Another class may differ in whether its instances have an identity, which the walk has asked the structure.
    if (info.kind != expected.kind || info.registration != NodeRefs{expected.kind, refs}.find(Role::kRegistration))
        return nullptr;
    if (!add(object, info, options)) return nullptr;
    const Answer &answer = answers_.back();
    if (answer.num_children() != expected.count || generation != cache_generation()) return nullptr;
    for (uint32_t i = 0; i < num_refs(expected); ++i) {
        PyObject *const result = NodeRefs{info.kind, this->refs(answer)}.ref(i);
        if (!is_same_ref(NodeRefs{expected.kind, refs}.ref(i), result))
            other_refs.push_back({static_cast<uint32_t>(refs + i - structure.refs), nb::borrow(result)});
    }
    return answer.items();
}

// The levels below one whose children are owned were owned with it.
bool NodeAnswers::own_all(const Structure &structure, BorrowedFrame &level, Levels &levels) {
    if (!own(level, waiting_, structure.num_nodes)) return false;
    for (size_t i = levels.size(); i-- > 0 && !levels[i].is_owned();)
        if (!own(levels[i], waiting_, structure.num_nodes)) return false;
    return true;
}

bool NodeAnswers::add(PyObject *object, const TypeInfo &info, OpenOptions &options) {
    constexpr size_t kAtFirst = 8;
    if (answers_.empty()) answers_.reserve(kAtFirst);
    answers_.push_back({nb::borrow(object), nb::object(), info.kind, refs_.size()});
    if (info.registration) refs_.push_borrowed(info.registration);
    const size_t num_refs = refs_.size();
    try {
        if (is_callback(info.kind)) {
            FlattenResult result = ask_function(object, info.registration, options);
            refs_.push_new(std::move(result.aux_data));
            refs_.push_new(std::move(result.entries));
            answers_.back().children = std::move(result.children);
        } else {
            Stack stack;  // the last child comes first
            open_node(object, info, options, stack, refs_);
            std::reverse(stack.data(), stack.data() + stack.size());
            answers_.back().children = stack.take_tuple();
        }
        return true;
    } catch (const std::bad_alloc &) {
        throw;  // GCOVR_EXCL_LINE: no test makes that request fail
    } catch (...) {
        refs_.drop_to(num_refs);
        failure_ = std::current_exception();
        return false;
    }
}

uint32_t NodeAnswers::open(PyObject *object, const TypeInfo &info, OpenOptions &options, Stack &stack, Refs &refs) {
    const auto is_of = [&](const Answer &answer) {
        return answer.node.is(object) && answer.kind == info.kind &&
               (!info.registration || *this->refs(answer) == info.registration);
    };
    if (next_ == answers_.size() || !is_of(answers_[next_])) return open_node(object, info, options, stack, refs);
    const Answer &answer = answers_[next_++];
    if (!answer.children.is_valid()) std::rethrow_exception(failure_);
    const NodeRefs result{answer.kind, this->refs(answer)};
    for (uint32_t i = 0; i < result.size(); ++i) refs.push_borrowed(result.ref(i));
    return detail::push_items(answer.items(), answer.num_children(), stack);
}

}  // namespace pydag
