// SPDX-License-Identifier: Apache-2.0
#include "walks/node_answers.h"

#include <new>

namespace pydag {

const NodeAnswers::Answer *NodeAnswers::ask(PyObject *object, const TypeInfo &info, OpenOptions &options, size_t room) {
    answers_.push_back(
        {nb::borrow(object), nb::borrow(info.registration), info.kind, 0, children_.size(), refs_.size()});
    Stack stack;
    const TypeInfo owned = {answers_.back().registration.ptr(), info.kind, info.identity};
    uint32_t count = 0;
    try {
        count = open_node(object, owned, options, stack, refs_);
    } catch (const std::bad_alloc &) {
        throw;
    } catch (...) {
        refs_.drop_to(answers_.back().first_ref);
        answers_.back().failure = std::current_exception();
        return nullptr;
    }
    if (children_.empty()) children_.reserve(room);
    const bool has_room = children_.size() + count <= room;
    children_.reserve(count);
    while (!stack.empty()) children_.push_new(stack.pop_owned());
    answers_.back().num_children = count;
    return has_room ? &answers_.back() : nullptr;
}

uint32_t NodeAnswers::open(PyObject *object, const TypeInfo &info, OpenOptions &options, Stack &stack, Refs &refs) {
    const bool is_next = next_ < answers_.size() && answers_[next_].node.is(object) &&
                         answers_[next_].kind == info.kind && answers_[next_].registration.ptr() == info.registration;
    if (!is_next) return open_node(object, info, options, stack, refs);
    const Answer &answer = answers_[next_++];
    if (answer.failure) std::rethrow_exception(answer.failure);
    const uint32_t count = answer.num_children;
    const NodeRefs said{answer.kind, this->refs(answer)};
    for (uint32_t i = 0; i < said.size(); ++i) refs.push_borrowed(said.ref(i));
    for (uint32_t i = count; i-- > 0;) stack.push_borrowed(children_[answer.first_child + i]);
    return count;
}

}  // namespace pydag
