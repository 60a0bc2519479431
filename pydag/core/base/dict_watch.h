// SPDX-License-Identifier: Apache-2.0
//
// Notices the changes of dicts that belong to other libraries.
#pragma once

#include "base/capi.h"

#include <atomic>

namespace pydag {

// Counts the changes of a few dicts. From 3.12 on the interpreter calls a watcher; before, each dict carries a version
// that every change renews.
class DictWatch {
public:
    void add(nb::handle dict) {
        if (std::find(dicts_, dicts_ + count_, dict.ptr()) != dicts_ + count_) return;
#ifdef PYDAG_HAS_DICT_WATCHERS
        if (id_ < 0) id_ = checked(PyDict_AddWatcher(on_event));
        checked(PyDict_Watch(id_, dict.ptr()));
#endif
        if (count_ == kMax) nb::raise("too many watched dicts");
        dicts_[count_++] = incref(dict.ptr());
        note_change();
    }
    // Any other number than before means a change.
    uint64_t num_changes() {
#ifndef PYDAG_HAS_DICT_WATCHERS
        for (int i = 0; i < count_; ++i) {
            const uint64_t version = reinterpret_cast<PyDictObject *>(dicts_[i])->ma_version_tag;
            if (version != versions_[i]) versions_[i] = version, note_change();
        }
#endif
        return num_changes_.load(std::memory_order_acquire);
    }

private:
    static constexpr int kMax = 8;
    static void note_change() { num_changes_.fetch_add(1, std::memory_order_acq_rel); }
#ifdef PYDAG_HAS_DICT_WATCHERS
    static int on_event(PyDict_WatchEvent, PyObject *, PyObject *, PyObject *) {
        note_change();
        return 0;
    }
    int id_ = -1;
#else
    uint64_t versions_[kMax] = {};
#endif
    static inline std::atomic<uint64_t> num_changes_ = 0;
    PyObject *dicts_[kMax] = {};  // owned, for the life of the process
    int count_ = 0;
};

}  // namespace pydag
