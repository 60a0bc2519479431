// SPDX-License-Identifier: Apache-2.0
//
// A pattern of paths as an automaton: `*` stands for anything, `?` for one character.
//
// What has matched on the ways to a node is a set of positions in the pattern. Such sets are few, so each is
// kept once and has a number, and a large tree with a long pattern takes no more memory than the tree.
#pragma once

#include "base/sequence_table.h"

#include <algorithm>
#include <iterator>
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
        add(0);
        start_ = keep();
    }

    State start() const { return start_; }
    // The state after some text, a str.
    State advance(State state, nb::handle text) {
        now_.assign(sets_.items(state).begin(), sets_.items(state).end());
        for_each_character(text, [&](Py_UCS4 c) {
            now_.swap(before_);
            now_.clear();
            for (const uint32_t at : before_) {
                if (pattern_[at] == '*') add(at);
                else if (pattern_[at] == c || pattern_[at] == '?') add(at + 1);
            }
        });
        return keep();
    }
    State either(State a, State b) {
        if (a == b || b == kNothing) return a;
        if (a == kNothing) return b;
        const auto one = sets_.items(a), other = sets_.items(b);
        now_.clear();
        std::set_union(one.begin(), one.end(), other.begin(), other.end(), std::back_inserter(now_));
        return keep();
    }
    // Whether the text may end here.
    bool accepts(State state) const {
        const auto positions = sets_.items(state);
        return !positions.empty() && pattern_[positions.back()] == kEnd;
    }

private:
    using Positions = std::vector<uint32_t>;     // ascending
    static constexpr Py_UCS4 kEnd = 0xFFFFFFFF;  // no character

    template <class Visit>
    static void for_each_character(nb::handle text, Visit visit) {
        for (Py_ssize_t i = 0; i < PyUnicode_GET_LENGTH(text.ptr()); ++i) visit(PyUnicode_READ_CHAR(text.ptr(), i));
    }
    // Adds a position that is no smaller than the last one but one, and the next one where it is a star, which also
    // stands for nothing.
    void add(uint32_t position) {
        if (!now_.empty() && now_.back() >= position) return;
        now_.push_back(position);
        if (pattern_[position] == '*') now_.push_back(position + 1);
    }
    State keep() { return sets_.find_or_add(now_.data(), now_.size()).number; }

    std::vector<Py_UCS4> pattern_;
    Positions now_, before_;
    SequenceTable sets_;
    State start_;
};

}  // namespace pydag
