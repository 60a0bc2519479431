// SPDX-License-Identifier: Apache-2.0
//
// Hashes that are the same in every process.
#pragma once

#include "base/capi.h"

#include <cstring>

namespace pydag {

inline uint64_t mix(uint64_t hash, uint64_t bits) {
    hash = (hash ^ bits) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

// The text of a string or of an instance of a subclass. Python stores equal texts in the same bytes.
inline uint64_t mix_text(uint64_t hash, PyObject *text) {
    const auto length = static_cast<size_t>(PyUnicode_GET_LENGTH(text));
    const auto *bytes = static_cast<const unsigned char *>(PyUnicode_DATA(text));
    hash = mix(hash, length << 3 | static_cast<size_t>(PyUnicode_KIND(text)));
    for (size_t left = length * static_cast<size_t>(PyUnicode_KIND(text)); left > 0;) {
        uint64_t word = 0;
        const size_t size = std::min(left, sizeof word);
        std::memcpy(&word, bytes, size);
        hash = mix(hash, word);
        bytes += size, left -= size;
    }
    return hash;
}

// The same for a string; anything else may be equal to anything, so only its place counts.
inline uint64_t mix_if_text(uint64_t hash, PyObject *object) {
    return object && PyUnicode_Check(object) ? mix_text(hash, object) : mix(hash, 0);
}

}  // namespace pydag
