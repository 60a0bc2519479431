// SPDX-License-Identifier: Apache-2.0
//
// Numbers sequences of small integers 0, 1, 2, ...: equal sequences get the same number.
#pragma once

#include "base/text_hash.h"

#include <algorithm>
#include <span>
#include <vector>

namespace pydag {

class SequenceTable {
public:
    struct Found {
        uint32_t number;
        bool is_new;
    };
    Found find_or_add(const uint32_t *items, size_t count) {
        if (entries_.size() * 2 >= slots_.size()) grow();
        uint64_t hash = count;
        for (size_t i = 0; i < count; ++i) hash = mix(hash, items[i]);
        size_t i = first_index(hash);
        for (; slots_[i]; i = (i + 1) & (slots_.size() - 1)) {
            const Entry &entry = entries_[slots_[i] - 1];
            if (entry.hash == hash && entry.count == count &&
                std::equal(items, items + count, items_.data() + entry.first))
                return {slots_[i] - 1, false};
        }
        entries_.push_back({hash, items_.size(), count});
        items_.insert(items_.end(), items, items + count);
        slots_[i] = static_cast<uint32_t>(entries_.size());
        return {slots_[i] - 1, true};
    }

    // The items of the sequence with this number, until the next one is added.
    std::span<const uint32_t> items(uint32_t number) const {
        return {items_.data() + entries_[number].first, entries_[number].count};
    }

private:
    struct Entry {
        uint64_t hash;
        size_t first, count;
    };
    size_t first_index(uint64_t hash) const { return (hash >> 20) & (slots_.size() - 1); }
    void grow() {
        slots_.assign(slots_.size() * 2, 0);
        for (size_t number = 0; number < entries_.size(); ++number) {
            size_t i = first_index(entries_[number].hash);
            while (slots_[i]) i = (i + 1) & (slots_.size() - 1);
            slots_[i] = static_cast<uint32_t>(number + 1);
        }
    }

    // A slot holds the number of its sequence, counted from 1.
    std::vector<uint32_t> slots_ = std::vector<uint32_t>(64), items_;
    std::vector<Entry> entries_;
};

}  // namespace pydag
