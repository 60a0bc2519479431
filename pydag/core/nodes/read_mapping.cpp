// SPDX-License-Identifier: Apache-2.0
//
// Looks into mappings and deques. Nothing here runs Python code.
#include "nodes/open.h"
#include "types/key_table.h"

#include <algorithm>
#include <utility>

namespace pydag::detail {
namespace {

// Visits what an OrderedDict holds as the collector does, until a key differs from the expected one
// or `end` is reached. Its iterator would not do: it looks up each key, and compares it.
struct KeyVisit {
    PyObject *const *next, *const *end;
    bool is_first = true;

    // Whether the collector's visit shows just these keys, in this order.
    bool agrees(PyObject *ordered_dict) {
        const visitproc visit = [](PyObject *key, void *arg) -> int {
            KeyVisit &self = *static_cast<KeyVisit *>(arg);
            // Its attributes come before its links. Having no hash, they can't be a key.
            if (std::exchange(self.is_first, false) && PyDict_CheckExact(key)) return 0;
            return self.next == self.end || key != *self.next || ++self.next == self.end;
        };
        PyODict_Type.tp_traverse(ordered_dict, visit, this);
        return next == end;
    }
};

bool visits_in_order = false;

}  // namespace

void try_out_ordered_dicts() {
    const nb::object dict = checked(PyODict_New());
    const char *const names[] = {"b", "a", "c"};
    for (const char *name : names) checked(PyODict_SetItem(dict.ptr(), nb::str(name).ptr(), Py_None));
    dict.attr("move_to_end")("a");
    const nb::object keys = checked(PySequence_Tuple(dict.ptr()));
    PyObject *const *const first = &PyTuple_GET_ITEM(keys.ptr(), 0);
    visits_in_order = KeyVisit{first, first + 3}.agrees(dict.ptr());
}

// PyDict_Next gives the order of the dict underneath, which `move_to_end` leaves alone. The last
// key needs no look. The keys are exact strings, so no Python code runs.
bool is_in_order_of(const Keys &keys, PyObject *dict) {
    if (keys.size() <= 1) return true;
    PyObject *const *const first = keys.inserted();
    return visits_in_order && KeyVisit{first, first + keys.size() - 1}.agrees(dict);
}

bool has_default_factory(PyObject *dict, PyObject *expected) { return default_factory_of(dict).is(expected); }

bool read_known_deque(PyObject *deque, PyObject *maxlen, uint32_t count, PyObject **values) {
    const nb::object found = checked(PyObject_GetAttr(deque, constants.maxlen));
    // Both are None or exact integers.
    if (PyObject_Size(deque) != static_cast<Py_ssize_t>(count) ||
        !checked(PyObject_RichCompareBool(found.ptr(), maxlen, Py_EQ)))
        return false;
    const nb::object iterator = checked(PyObject_GetIter(deque));
    // The deque holds its items, so what the iterator gives may be let go at once.
    for (uint32_t i = 0; i < count; ++i) values[i] = checked(PyIter_Next(iterator.ptr())).ptr();
    return true;
}

PyObject **read_mapping(PyObject *dict, bool sorted, OpenOptions &options, Refs &refs) {
    const auto count = static_cast<size_t>(PyDict_GET_SIZE(dict));
    PyObject **const names = options.arena.take(count), **const found = options.arena.take(count);
    Py_ssize_t position = 0;
    for (size_t i = 0; i < count; ++i) {
        if (!PyDict_Next(dict, &position, &names[i], &found[i])) return nullptr;
        prefetch(names[i]);
    }
    nb::object box = nb::borrow(find_keys(names, count, sorted));
    if (!box.is_valid()) {
        if (!std::all_of(names, names + count, is_exact_str)) return nullptr;
        box = keys_of(names, count, sorted);
    }
    if (!has_order_of(KeysBox::of(box), sorted ? &options : nullptr)) box = keys_of(names, count, false);
    const Keys &keys = KeysBox::of(box);
    PyObject **const values = names;  // the names are no longer needed, so their memory is used again
    for (uint32_t i = 0; i < count; ++i) values[keys.rank(i)] = found[i];
    options.arena.give_back(found);
    refs.push_new(std::move(box));
    return values;
}

}  // namespace pydag::detail
