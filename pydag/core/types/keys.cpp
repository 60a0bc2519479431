// SPDX-License-Identifier: Apache-2.0
#include "types/keys.h"

#include "base/constant_size.h"
#include "base/equality.h"
#include "base/text_hash.h"
#include "base/tuples.h"
#include "types/key_order.h"

#include <algorithm>
#include <numeric>

namespace pydag {

bool has_constant_hash(PyObject *key) {
    if (!PyTuple_CheckExact(key)) return is_constant(key);
    PyObject *const *const items = &PyTuple_GET_ITEM(key, 0);
    return std::all_of(items, items + PyTuple_GET_SIZE(key), [](PyObject *item) { return item && is_constant(item); });
}

uint64_t Keys::hash() const {
    if (const uint64_t known = content_hash.load(std::memory_order_relaxed)) return known;
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; ++i) hash = mix_if_text(hash, key(i));
    content_hash.store(hash | 1, std::memory_order_relaxed);
    return hash | 1;
}

nb::object Keys::tuple() const { return tuple_of(inserted(), count); }

nb::object Keys::order() const {
    nb::object tuple = checked(PyTuple_New(count));
    for (uint32_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.ptr(), i, incref(key(i)));
    return tuple;
}

size_t Keys::num_bytes() const {
    size_t total = sizeof(Keys);
    for (uint32_t i = 0; i < count; ++i) {
        const size_t size = constant_size(inserted_key(i));
        if (size == 0) return 0;
        constexpr size_t kInTemplate = 40;
        total += size + kItemSize + kInTemplate;
    }
    return total;
}

nb::object new_keys(PyObject *const *keys, size_t count) {
    nb::object box = KeysBox::make_with_items(count);
    Keys &made = KeysBox::of(box);
    for (size_t i = 0; i < count; ++i) made.inserted()[i] = incref(keys[i]);
    made.count = static_cast<uint32_t>(count);
    made.has_only_strings = std::all_of(keys, keys + count, is_exact_str);
    made.has_constant_hashes = made.has_only_strings || std::all_of(keys, keys + count, has_constant_hash);
    if (!made.has_constant_hashes) KeysBox::track(box);
    return box;
}

nb::object new_sorted_keys(PyObject *const *keys, size_t count, size_t num_sorted) {
    nb::object box = new_keys(keys, count);
    Keys &made = KeysBox::of(box);
    made.num_sorted = static_cast<uint32_t>(num_sorted);
    uint32_t *const ranks = made.rank_memory();
    made.in_order = !ascending_order(made.inserted(), made.num_sorted, ranks);
    if (made.in_order || num_sorted == count) return box;
    // The keys that were not sorted follow behind the others, in both permutations.
    std::copy_backward(ranks + num_sorted, ranks + 2 * num_sorted, ranks + count + num_sorted);
    std::iota(ranks + num_sorted, ranks + count, made.num_sorted);
    std::iota(ranks + count + num_sorted, ranks + 2 * count, made.num_sorted);
    return box;
}

bool equal_keys(nb::handle a, nb::handle b) {
    if (a.is(b)) return true;
    const Keys &x = KeysBox::of(a), &y = KeysBox::of(b);
    if (x.size() != y.size()) return false;
    for (uint32_t i = 0; i < x.size(); ++i)
        if (!are_equal_objects(x.key(i), y.key(i))) return false;
    return true;
}

bool have_same_order(const Keys &a, const Keys &b) {
    if (a.size() != b.size()) return false;
    for (uint32_t i = 0; i < a.size(); ++i)
        if (a.rank(i) != b.rank(i)) return false;
    return true;
}

}  // namespace pydag
