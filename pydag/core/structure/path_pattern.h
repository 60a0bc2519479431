// SPDX-License-Identifier: Apache-2.0
//
// A pattern of paths as an automaton: `*` stands for anything, `?` for one character.
//
// What has matched on the ways to a node is a set of positions in the pattern. Such sets are few, so each is
// kept once and has a number, and a large tree with a long pattern takes no more memory than the tree.
#pragma once

#include "base/sequence_table.h"

#include <unordered_map>
#include <vector>

namespace pydag {

class PathPattern {
public:
    using State = uint32_t;               // the number of a set
    static constexpr State kNothing = 0;  // the empty set: no more text can match

    // `pattern`: a str.
    explicit PathPattern(nb::handle pattern);

    State start() const { return start_; }
    // The state after some text.
    State advance(State state, nb::handle text);
    State either(State a, State b);
    // Whether the text may end here.
    bool accepts(State state) const;

private:
    using Word = uint32_t;
    using Bits = std::vector<Word>;
    static constexpr uint32_t kBits = 32;
    static constexpr Py_UCS4 kAscii = 128;

    static void set(Word *bits, uint32_t position) { bits[position / kBits] |= Word{1} << position % kBits; }
    size_t &row_of(Py_UCS4 c) { return c < kAscii ? ascii_[c] : others_[c]; }
    const Word *steps_of(Py_UCS4 c) const;
    bool advance_by(Py_UCS4 c);  // moves `now_`; false when nothing is left
    void close();                // a star also stands for nothing
    State keep() { return sets_.find_or_add(now_.data(), size_).number; }
    void take(State state) { now_.assign(sets_.items(state), sets_.items(state) + size_); }

    const size_t size_;    // of a set, in words
    uint32_t length_ = 0;  // of the pattern, without repeated stars
    Bits stars_, now_;
    // Rows of `size_` words: where in the pattern a character may stand. The first row is for characters that
    // aren't in the pattern.
    Bits rows_;
    size_t ascii_[kAscii] = {};  // the index of a character's row in `rows_`
    std::unordered_map<Py_UCS4, size_t> others_;
    SequenceTable sets_;
    State start_;
};

}  // namespace pydag
