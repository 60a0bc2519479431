// SPDX-License-Identifier: Apache-2.0
#include "walks/node_answers.h"

#include <new>

namespace pydag {
namespace {

constexpr size_t kAtFirst = 8;

// The items of a stack as a tuple, the one on top first.
nb::object take_items(Stack &stack, uint32_t count) {
    std::reverse(stack.data(), stack.data() + count);
    return stack.take_tuple();
}

}  // namespace

const NodeAnswers::Answer *NodeAnswers::ask(PyObject *object, const TypeInfo &info, OpenOptions &options) {
    if (answers_.empty()) answers_.reserve(kAtFirst);
    answers_.push_back({nb::borrow(object), nb::object(), info.kind, refs_.size()});
    if (info.registration) refs_.push_borrowed(info.registration);
    try {
        add(object, info, options);
    } catch (const std::bad_alloc &) {
        throw;
    } catch (...) {
        refs_.drop_to(answers_.back().first_ref + (info.registration ? 1 : 0));
        failure_ = std::current_exception();
        return nullptr;
    }
    return &answers_.back();
}

void NodeAnswers::add(PyObject *object, const TypeInfo &info, OpenOptions &options) {
    if (is_callback(info.kind)) {
        Said said = ask_function(object, info.registration, options);
        refs_.push_new(std::move(said.aux_data));
        refs_.push_new(std::move(said.entries));
        answers_.back().children = std::move(said.children);
    } else {
        Stack stack;
        const uint32_t count = open_node(object, info, options, stack, refs_);
        answers_.back().children = take_items(stack, count);
    }
}

// A failed node has no references but its registration.
bool NodeAnswers::is_of(const Answer &answer, PyObject *object, const TypeInfo &info) const {
    return answer.node.is(object) && answer.kind == info.kind &&
           (!info.registration || *refs(answer) == info.registration);
}

uint32_t NodeAnswers::open(PyObject *object, const TypeInfo &info, OpenOptions &options, Stack &stack, Refs &refs) {
    if (next_ == answers_.size() || !is_of(answers_[next_], object, info))
        return open_node(object, info, options, stack, refs);
    const Answer &answer = answers_[next_++];
    if (!answer.children.is_valid()) std::rethrow_exception(failure_);
    const NodeRefs said{answer.kind, this->refs(answer)};
    for (uint32_t i = 0; i < said.size(); ++i) refs.push_borrowed(said.ref(i));
    const uint32_t count = answer.num_children();
    for (uint32_t i = count; i-- > 0;) stack.push_borrowed(children(answer)[i]);
    return count;
}

}  // namespace pydag
