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
            return self.next == self.end || !is_same_key(key, *self.next) || ++self.next == self.end;
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
bool is_in_order_of(PyObject *const *keys, size_t count, PyObject *dict) {
    return count <= 1 || (visits_in_order && KeyVisit{keys, keys + count - 1}.agrees(dict));
}

namespace {

// The deque itself; where another thread may change it, a copy.
nb::object of_one_moment(PyObject *deque) {
    return kFreeThreaded ? nb::handle(deque).attr("copy")() : nb::borrow(deque);
}

}  // namespace

nb::object items_of_deque(PyObject *deque) { return checked(PySequence_List(of_one_moment(deque).ptr())); }

bool has_default_factory(PyObject *dict, PyObject *expected) { return default_factory_of(dict).is(expected); }

bool read_known_deque(PyObject *deque, PyObject *maxlen, uint32_t count, PyObject **values, HeldBy held) {
    const nb::object found = checked(PyObject_GetAttr(deque, constants.maxlen));
    const nb::object source = of_one_moment(deque);
    // Both are None or exact integers.
    if (PyObject_Size(source.ptr()) != static_cast<Py_ssize_t>(count) ||
        !checked(PyObject_RichCompareBool(found.ptr(), maxlen, Py_EQ)))
        return false;
    const nb::object iterator = checked(PyObject_GetIter(source.ptr()));
    // The deque holds its items, so what the iterator gives may be let go at once.
    for (uint32_t i = 0; i < count; ++i) values[i] = checked(PyIter_Next(iterator.ptr())).ptr();
    held.keep(values, count);
    return true;
}

// GCOVR_EXCL_START: only without the GIL, where lists change meanwhile
bool copy_known_items(PyObject *list, Py_ssize_t count, PyObject **values, HeldBy held) {
    const Locked locked(list);
    if (PyList_GET_SIZE(list) != count) return false;
    std::copy_n(reinterpret_cast<PyListObject *>(list)->ob_item, count, values);
    held.keep(values, static_cast<size_t>(count));
    return true;
}

PyObject **copy_items(PyObject *list, OpenOptions &options, uint32_t &count) {
    const Locked locked(list);
    count = checked_count(list, PyList_GET_SIZE(list));
    PyObject **const values = options.arena.take(count);
    std::copy_n(reinterpret_cast<PyListObject *>(list)->ob_item, count, values);
    options.held.keep(values, count);
    return values;
}
// GCOVR_EXCL_STOP

PyObject **read_mapping(PyObject *dict, bool is_ordered, OpenOptions &options, Refs &refs, uint32_t &size) {
    PyObject **names, **found;
    size_t count;
    nb::object box;
    {
        const Locked locked(dict);
        size = checked_count(dict, PyDict_GET_SIZE(dict));
        count = size;
        names = options.arena.take(count), found = options.arena.take(count);
        Py_ssize_t position = 0;
        for (size_t i = 0; i < count; ++i) {
            if (!PyDict_Next(dict, &position, &names[i], &found[i])) return nullptr;
            prefetch(names[i]);
        }
        if (is_ordered && !is_in_order_of(names, count, dict)) return nullptr;
        box = nb::borrow(find_keys(names, count, num_sorted_if(!is_ordered, count)));
        options.held.keep(found, count);
        if (!box.is_valid()) options.held.keep(names, count);
    }
    if (!box.is_valid()) {
        if (!std::all_of(names, names + count, has_constant_hash)) return nullptr;  // others may run code
        box = keys_of(names, count, num_sorted_if(!is_ordered, count));
    }
    if (!has_order_of(KeysBox::of(box), is_ordered ? nullptr : &options)) box = keys_of(names, count, 0);
    const Keys &keys = KeysBox::of(box);
    PyObject **const values = names;  // the names are no longer needed, so their memory is used again
    for (uint32_t i = 0; i < count; ++i) values[keys.rank(i)] = found[i];
    options.arena.give_back(found);
    refs.push_new(std::move(box));
    return values;
}

}  // namespace pydag::detail
