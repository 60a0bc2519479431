// SPDX-License-Identifier: Apache-2.0
//
// A pattern of paths as an automaton: `*` stands for anything, `?` for one character.
//
// A state is a set of positions in the pattern. Such sets are few, so each is kept once and has a number, and a large
// tree with a long pattern takes no more memory than the tree.
#pragma once

#include "base/sequence_table.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace pydag {

class PathPattern {
public:
    using State = uint32_t;               // the number of a set
    static constexpr State kNothing = 0;  // the empty set: no more text can match

    // `pattern`: a str.
    explicit PathPattern(nb::handle pattern) {
        keep();  // kNothing
        for_each_character(pattern, [&](Py_UCS4 c) {
            if (c != '*' || pattern_.empty() || pattern_.back() != '*') pattern_.push_back(c);  // two stars mean one
        });
        pattern_.push_back(kEnd);
        now_.resize(pattern_.size()), before_.resize(pattern_.size());
        add(0);
        start_ = keep();
    }

    State start() const { return start_; }
    // The state after some text, a str.
    State advance(State state, nb::handle text) {
        const auto positions = sets_.items(state);
        size_ = positions.size();
        std::copy(positions.begin(), positions.end(), now_.begin());
        for_each_character(text, [&](Py_UCS4 c) {
            now_.swap(before_);
            const size_t size = std::exchange(size_, 0);
            for (size_t i = 0; i < size; ++i) {
                const uint32_t at = before_[i];
                const Py_UCS4 expected = pattern_[at];
                if (expected == '*') add(at);
                else if (expected == c || expected == '?') add(at + 1);
            }
        });
        return keep();
    }
    State either(State a, State b) {
        if (a == b || b == kNothing) return a;
        if (a == kNothing) return b;
        const auto one = sets_.items(a), other = sets_.items(b);
        const auto end = std::set_union(one.begin(), one.end(), other.begin(), other.end(), now_.begin());
        size_ = static_cast<size_t>(end - now_.begin());
        return keep();
    }
    // Whether the text may end here.
    bool accepts(State state) const {
        const auto positions = sets_.items(state);
        return !positions.empty() && pattern_[positions.back()] == kEnd;
    }

private:
    static constexpr Py_UCS4 kEnd = 0xFFFFFFFF;  // no character

    template <class Visit>
    static void for_each_character(nb::handle text, Visit visit) {
        const int kind = PyUnicode_KIND(text.ptr());
        const void *const data = PyUnicode_DATA(text.ptr());
        const Py_ssize_t length = PyUnicode_GET_LENGTH(text.ptr());
        for (Py_ssize_t i = 0; i < length; ++i) visit(PyUnicode_READ(kind, data, i));
    }
    // Adds a position that is at least the one before the last, and the next one where it is a star, which also
    // stands for nothing.
    void add(uint32_t position) {
        if (size_ > 0 && now_[size_ - 1] >= position) return;
        now_[size_++] = position;
        if (pattern_[position] == '*') now_[size_++] = position + 1;
    }
    State keep() { return sets_.find_or_add(now_.data(), size_).number; }

    std::vector<Py_UCS4> pattern_;
    std::vector<uint32_t> now_, before_;  // positions, ascending, with room for all
    size_t size_ = 0;                     // of `now_`
    SequenceTable sets_;
    State start_;
};

}  // namespace pydag
