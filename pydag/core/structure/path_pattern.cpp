// SPDX-License-Identifier: Apache-2.0
#include "structure/path_pattern.h"

namespace pydag {
namespace {

// Calls `visit(character)` for each character of a str, as long as it returns true.
template <class Visit>
void for_each_character(nb::handle text, Visit visit) {
    const int kind = PyUnicode_KIND(text.ptr());
    const void *const data = PyUnicode_DATA(text.ptr());
    const Py_ssize_t length = PyUnicode_GET_LENGTH(text.ptr());
    for (Py_ssize_t i = 0; i < length && visit(PyUnicode_READ(kind, data, i));) ++i;
}

}  // namespace

PathPattern::PathPattern(nb::handle pattern)
    : size_(static_cast<size_t>(PyUnicode_GET_LENGTH(pattern.ptr())) / kBits + 1),
      stars_(size_),
      now_(size_),
      rows_(size_) {
    keep();  // kNothing
    Bits any(size_);
    Py_UCS4 before = 0;
    for_each_character(pattern, [&](Py_UCS4 c) {
        if (c == '*' && before == '*') return true;  // two stars mean one
        before = c;
        if (c == '*') set(stars_.data(), length_);
        else if (c == '?') set(any.data(), length_);
        else {
            size_t &row = row_of(c);
            if (row == 0) row = rows_.size(), rows_.resize(row + size_);
            set(&rows_[row], length_);
        }
        ++length_;
        return true;
    });
    for (size_t i = 0; i < rows_.size(); ++i) rows_[i] |= any[i % size_];
    now_[0] = 1;
    close();
    start_ = keep();
}

PathPattern::State PathPattern::advance(State state, nb::handle text) {
    if (state == kNothing) return kNothing;
    take(state);
    bool goes_on = true;
    for_each_character(text, [&](Py_UCS4 c) { return goes_on = advance_by(c); });
    return goes_on ? keep() : kNothing;
}

PathPattern::State PathPattern::either(State a, State b) {
    if (a == b || b == kNothing) return a;
    if (a == kNothing) return b;
    take(a);
    for (size_t i = 0; i < size_; ++i) now_[i] |= sets_.items(b)[i];
    return keep();
}

bool PathPattern::accepts(State state) const {
    return (sets_.items(state)[length_ / kBits] >> length_ % kBits & 1) != 0;
}

const PathPattern::Word *PathPattern::steps_of(Py_UCS4 c) const {
    if (c < kAscii) return &rows_[ascii_[c]];
    const auto found = others_.find(c);
    return &rows_[found == others_.end() ? 0 : found->second];
}

bool PathPattern::advance_by(Py_UCS4 c) {
    const Word *const steps = steps_of(c);
    Word carry = 0, all = 0;
    for (size_t i = 0; i < size_; ++i) {
        const Word step = now_[i] & steps[i];
        now_[i] = step << 1 | carry | (now_[i] & stars_[i]);
        carry = step >> (kBits - 1);
        all |= now_[i];
    }
    close();
    return all != 0;
}

void PathPattern::close() {
    Word carry = 0;
    for (size_t i = 0; i < size_; ++i) {
        const Word behind = now_[i] & stars_[i];
        now_[i] |= behind << 1 | carry;
        carry = behind >> (kBits - 1);
    }
}

}  // namespace pydag
