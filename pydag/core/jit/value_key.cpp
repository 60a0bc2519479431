// SPDX-License-Identifier: Apache-2.0
#include "jit/value_key.h"

#include "base/buffer.h"
#include "base/constants.h"
#include "base/equality.h"
#include "types/classes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace pydag {
namespace {

constexpr size_t kLongest = size_t{1} << 18;  // a value may hold another one several times, at each of many levels
constexpr int kLevels = 64;

// Each part begins with a tag, and says how long it is: so no two values have the same bytes.
class KeyWriter {
public:
    // False for a value that is too long or too deep.
    bool write(PyObject *value, int levels) {
        if (levels == 0 || bytes_.size() > kLongest) return false;
        PyTypeObject *const type = Py_TYPE(value);
        if (type == &PyLong_Type) return write_integer(value);
        if (type == &PyFloat_Type) return write_number('f', nullptr, PyFloat_AS_DOUBLE(value));
        if (type == &PyUnicode_Type) return write_text('s', nullptr, value);
        if (type == &PyComplex_Type) return write_complex(nullptr, value);
        if (type == &PyBytes_Type)
            return write_sized('b', {PyBytes_AS_STRING(value), static_cast<size_t>(PyBytes_GET_SIZE(value))});
        if (type == &PyFrozenSet_Type) return write_set(value, levels - 1);
        if (type == &PyRange_Type || type == &PySlice_Type)
            return write_items(
                type,
                {attribute(value, constants.start), attribute(value, constants.stop), attribute(value, constants.step)},
                levels - 1);
        if (is_tuple_of_items(value) && is_filled(value)) return write_tuple(value, levels - 1);
        if (is_heap_type(type) || type == &PyBool_Type || value == Py_None) return write_address(value);
        if (is_of_numpy(type, "numpy.generic")) return write_scalar(value);
        return is_of_numpy(type, "numpy.dtype") ? write_dtype(value) : write_address(value);
    }
    bool write_address(const void *address) {
        add('a', address);
        return true;
    }
    nb::object take() const {
        return checked(PyBytes_FromStringAndSize(bytes_.data(), static_cast<Py_ssize_t>(bytes_.size())));
    }

private:
    static nb::object attribute(PyObject *value, PyObject *name) { return checked(PyObject_GetAttr(value, name)); }

    void add_bytes(const void *data, size_t size) { std::memcpy(bytes_.extend(size), data, size); }
    template <class... Parts>
    void add(char tag, const Parts &...parts) {
        bytes_.push(tag);
        (add_bytes(&parts, sizeof parts), ...);
    }
    bool write_sized(char tag, std::string_view data, const PyTypeObject *type = nullptr) {
        if (data.size() > kLongest) return false;
        add(tag, type, data.size());
        add_bytes(data.data(), data.size());
        return true;
    }
    // Python stores equal texts in the same bytes.
    bool write_text(char tag, const PyTypeObject *type, PyObject *text) {
        const auto width = static_cast<size_t>(PyUnicode_KIND(text));
        bytes_.push(static_cast<char>(width));
        const auto *const data = static_cast<const char *>(PyUnicode_DATA(text));
        return write_sized(tag, {data, static_cast<size_t>(PyUnicode_GET_LENGTH(text)) * width}, type);
    }
    bool write_integer(PyObject *value) {
        int overflow = 0;
        const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow) return write_text('I', nullptr, checked(PyNumber_ToBase(value, 16)).ptr());
        add('i', number);
        return true;
    }
    // All NaNs are one. `type`: null for the builtin class.
    bool write_number(char tag, const PyTypeObject *type, double number) {
        if (std::isnan(number)) number = std::numeric_limits<double>::quiet_NaN();
        add(tag, type, number);
        return true;
    }
    bool write_complex(const PyTypeObject *type, PyObject *value) {
        const Py_complex number = PyComplex_AsCComplex(value);
        if (PyErr_Occurred()) throw nb::python_error();
        // As in types/values.h, where the sign of a part counts even if the other part is NaN.
        return write_number('c', type, number.real) && write_number('c', type, number.imag);
    }
    bool write_items(const PyTypeObject *type, std::initializer_list<nb::object> items, int levels) {
        add('t', type, items.size());
        return std::all_of(items.begin(), items.end(), [&](const nb::object &x) { return write(x.ptr(), levels); });
    }
    bool write_tuple(PyObject *value, int levels) {
        const auto count = static_cast<size_t>(PyTuple_GET_SIZE(value));
        add('t', Py_TYPE(value), count);
        PyObject *const *const items = &PyTuple_GET_ITEM(value, 0);
        return std::all_of(items, items + count, [&](PyObject *item) { return write(item, levels); });
    }
    // Whatever the order of the elements.
    bool write_set(PyObject *value, int levels) {
        const nb::object elements = checked(PySequence_Tuple(value));
        std::vector<std::string> keys;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(elements.ptr()); ++i) {
            KeyWriter writer;
            if (!writer.write(PyTuple_GET_ITEM(elements.ptr(), i), levels)) return false;
            keys.emplace_back(writer.bytes_.data(), writer.bytes_.size());
        }
        std::sort(keys.begin(), keys.end());
        add('z', keys.size());
        for (const std::string &key : keys) add_bytes(key.data(), key.size());
        return true;
    }
    // Numbers by their memory, which all but the widest fill; dates and text by their `repr`.
    bool write_scalar(PyObject *value) {
        const PyTypeObject *const type = Py_TYPE(value);
        if (std::string_view(type->tp_name) == "numpy.void") return write_address(value);
        Py_buffer view;
        if (PyObject_GetBuffer(value, &view, PyBUF_FORMAT | PyBUF_ND) < 0) {
            PyErr_Clear();
            return write_text('n', type, checked(PyObject_Repr(value)).ptr());
        }
        const std::string_view format(view.ndim == 0 && view.format ? view.format : "");
        const std::string data(static_cast<const char *>(view.buf), static_cast<size_t>(view.len));
        PyBuffer_Release(&view);
        if (format == "Zf" || format == "Zd") return write_complex(type, value);
        if (format.size() == 1 && std::string_view("efd").find(format[0]) != std::string_view::npos) {
            const double number = PyFloat_AsDouble(value);
            if (PyErr_Occurred()) throw nb::python_error();
            return write_number('f', type, number);
        }
        if (format.size() == 1 && std::string_view("?bBhHiIlLqQ").find(format[0]) != std::string_view::npos)
            return write_sized('n', data, type);
        return write_text('n', type, checked(PyObject_Repr(value)).ptr());
    }
    // One with fields may hold objects of the user's.
    bool write_dtype(PyObject *value) {
        if (!attribute(value, constants.names).is_none() || !attribute(value, constants.subdtype).is_none())
            return write_address(value);
        return write_text('d', Py_TYPE(value), attribute(value, constants.str).ptr());
    }

    Buffer<char, 128> bytes_;
};

}  // namespace

nb::object value_key(nb::handle value) {
    KeyWriter writer, by_address;
    if (writer.write(value.ptr(), kLevels)) return writer.take();
    by_address.write_address(value.ptr());
    return by_address.take();
}

}  // namespace pydag
