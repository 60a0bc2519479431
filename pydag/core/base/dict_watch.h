// SPDX-License-Identifier: Apache-2.0
//
// Notices the changes of dicts that belong to other libraries.
#pragma once

#include "base/capi.h"

#include <atomic>

namespace pydag {

struct DictChanges {
    static constexpr int kMostKeys = 16;
    PyObject *keys[kMostKeys];  // may be gone: only their addresses say something
    int num_keys = 0;
    bool are_unknown = false;  // which keys it was
};

// Counts the changes of a few dicts: by a watcher, which Python has from 3.12 on; before, by the version of each dict.
class DictWatch {
public:
    // `address_of(key)`: identifies a key; null for a key that can't be told apart from others.
    // `is_plain(key)`: whether comparing it with another key runs no Python code.
    DictWatch(PyObject *(*address_of)(PyObject *key), bool (*is_plain)(PyObject *key)) {
        address_of_ = address_of;
        is_plain_ = is_plain;
    }
    void add(nb::handle dict) {
        if (std::find(dicts_, dicts_ + count_, dict.ptr()) != dicts_ + count_) return;
#ifdef PYDAG_HAS_DICT_WATCHERS
        if (id_ < 0) id_ = checked(PyDict_AddWatcher(on_event));
        checked(PyDict_Watch(id_, dict.ptr()));
#endif
        if (count_ == kMax) nb::raise("too many watched dicts");
        dicts_[count_++] = incref(dict.ptr());
        note_change(nullptr);
        Py_ssize_t position = 0;
        for (PyObject *key, *value; PyDict_Next(dict.ptr(), &position, &key, &value);) note_key(key);
    }
    uint64_t num_changes() {
#ifndef PYDAG_HAS_DICT_WATCHERS
        for (int i = 0; i < count_; ++i) {
            const uint64_t version = reinterpret_cast<PyDictObject *>(dicts_[i])->ma_version_tag;
            if (version != versions_[i]) versions_[i] = version, note_change(nullptr);
        }
#endif
        return num_changes_.load(std::memory_order_acquire);
    }
    // What changed since the last call.
    DictChanges take_changes() {
        DictChanges unknown;
        unknown.are_unknown = true;
        return kFreeThreaded ? unknown : std::exchange(changes_, DictChanges());
    }
    // Whether one of the dicts has the key. Runs the key's own hash and comparison.
    bool has(nb::handle key) const {
        return std::any_of(dicts_, dicts_ + count_,
                           [=](PyObject *dict) { return checked(PyDict_Contains(dict, key.ptr())) != 0; });
    }

    // Whether looking for a plain key runs no Python code. False for good once a dict has had a key that isn't plain.
    static bool is_quiet() {
#ifdef PYDAG_HAS_DICT_WATCHERS
        return are_all_plain_.load(std::memory_order_relaxed);
#else
        return false;  // nobody knows the keys
#endif
    }

private:
    static constexpr int kMax = 8;
    static void note_key(PyObject *key) {
        if (!is_plain_(key)) are_all_plain_.store(false, std::memory_order_relaxed);
    }
    // The keys are noted where the GIL sees to it that only one thread does.
    static void note_change(PyObject *key) {
        num_changes_.fetch_add(1, std::memory_order_acq_rel);
        if (kFreeThreaded) return;
        PyObject *const address = key ? address_of_(key) : nullptr;
        if (!address || changes_.num_keys == DictChanges::kMostKeys) changes_.are_unknown = true;
        else changes_.keys[changes_.num_keys++] = address;
    }
#ifdef PYDAG_HAS_DICT_WATCHERS
    static int on_event(PyDict_WatchEvent, PyObject *, PyObject *key, PyObject *) {
        note_change(key);
        if (key) note_key(key);
        return 0;
    }
    int id_ = -1;
#else
    uint64_t versions_[kMax] = {};
#endif
    static inline std::atomic<uint64_t> num_changes_ = 0;
    static inline DictChanges changes_;
    static inline PyObject *(*address_of_)(PyObject *) = nullptr;
    static inline bool (*is_plain_)(PyObject *) = nullptr;
    static inline std::atomic<bool> are_all_plain_ = true;
    PyObject *dicts_[kMax] = {};  // owned, for the life of the process
    int count_ = 0;
};

}  // namespace pydag
