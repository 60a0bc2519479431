// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include "base/constants.h"
#include "base/threads.h"

#include <cstdarg>
#include <new>

namespace pydag {
namespace {

constexpr size_t kLongestText = 1500;
constexpr size_t kLongestPath = 400;

// Cuts out the middle, never in the middle of a UTF-8 sequence.
std::string shortened(const std::string &text, size_t longest) {
    if (text.size() <= longest) return text;
    size_t head = longest / 2, tail = text.size() - longest / 2;
    const auto is_inside = [&](size_t i) { return (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80; };
    while (head > 0 && is_inside(head)) --head;
    while (tail < text.size() && is_inside(tail)) ++tail;
    return text.substr(0, head) + " ... " + text.substr(tail);
}

// Each exception class is made once: a module that is made anew gets the same ones.
void add_exception(nb::module_ &module, PyObject *&type, const char *name, const char *doc) {
    const std::string qualified = std::string("pydag.") + name;
    if (!type)
        type = checked(PyErr_NewExceptionWithDoc(qualified.c_str(), doc, PyExc_ValueError, nullptr)).release().ptr();
    module.attr(name) = nb::handle(type);
}

}  // namespace

void add_note(nb::object exception, const std::string &note) {
    constexpr Py_ssize_t kMostNotes = 20;
    const nb::object text = nb::steal(PyUnicode_FromString(note.c_str()));
    const nb::object notes = nb::steal(PyObject_GetAttr(exception.ptr(), constants.notes));
    PyErr_Clear();
    if (!text.is_valid()) return;
    if (notes.is_valid() && PyList_Check(notes.ptr())) {
        const Locked locked(notes.ptr());
        if (PyList_GET_SIZE(notes.ptr()) >= kMostNotes) return;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(notes.ptr()); ++i) {
            PyObject *const known = PyList_GET_ITEM(notes.ptr(), i);
            if (known && is_exact_str(known) && PyUnicode_Compare(known, text.ptr()) == 0) return;
        }
    }
    nb::steal(PyObject_CallMethodOneArg(exception.ptr(), constants.add_note, text.ptr())).reset();
}

void make_exceptions(nb::module_ &module) {
    add_exception(module, cycle_error, "CycleError", "An object contains itself, so that the structure is not a DAG.");
    add_exception(module, sharing_error, "SharingError",
                  "One shared object was given two different answers, or two structures "
                  "that should be shared alike are not.");
}

void fail(PyObject *type, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    PyObject *const text = PyUnicode_FromFormatV(format, arguments);
    va_end(arguments);
    throw Complaint(type, text_of(checked(text)));
}

void fail_unfilled() { fail(PyExc_ValueError, "a list or tuple that isn't filled yet can't be used"); }

void refuse_torch_module(nb::handle tree) {
    PyTypeObject *const type = Py_TYPE(tree.ptr());
    if (!is_heap_type(type)) return;
    const nb::object library = find_in_dict(nb::handle(PyImport_GetModuleDict()), nb::handle(constants.torch_nn));
    if (!library.is_valid()) return;
    // GCOVR_EXCL_START: PyTorch, as by `make test-torch`
    const nb::object cls = nb::steal(PyObject_GetAttr(library.ptr(), constants.torch_module));
    PyErr_Clear();  // a library that is still being imported has no such class yet
    if (!cls.is_valid() || !PyType_Check(cls.ptr())) return;
    if (!PyType_IsSubtype(type, reinterpret_cast<PyTypeObject *>(cls.ptr()))) return;
    fail(PyExc_TypeError,
         "the tree is a torch.nn.Module (%.200s), which is one leaf, since its class isn't registered\n"
         "  Give pydag.integrations.torch.module_tree(module), the tree of its parameters and buffers. To a file: "
         "save(path, module.state_dict()).",
         type->tp_name);
    // GCOVR_EXCL_STOP
}

nb::object short_repr(nb::handle object) {
    nb::object text = nb::steal(PyObject_CallOneArg(constants.short_repr, object.ptr()));
    if (text.is_valid()) return text;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) nb::raise_python_error();
    PyErr_Clear();
    return checked(PyUnicode_FromString("<object>"));
}

std::string text_of(nb::handle str) {
    Py_ssize_t size = 0;
    const char *const data = PyUnicode_AsUTF8AndSize(str.ptr(), &size);
    if (data) return std::string(data, static_cast<size_t>(size));
    PyErr_Clear();  // lone surrogates have no UTF-8
    const nb::object bytes = checked(PyUnicode_AsEncodedString(str.ptr(), "utf-8", "backslashreplace"));
    return std::string(PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr())));
}

std::string path_text(const Steps &steps, const char *root) {
    // A path may be a million steps long: only those that will be seen are written out.
    constexpr size_t kSeen = kLongestPath / 4;
    std::string head = root, tail;
    const auto write = [](std::string &out, const Step &step) {
        if (step.is_attribute && PyUnicode_Check(step.entry.ptr())) out += "." + text_of(step.entry);
        else out += "[" + text_of(short_repr(step.entry)) + "]";
    };
    if (steps.size() <= 2 * kSeen) {
        for (const Step &step : steps) write(head, step);
        return shortened(head, kLongestPath);
    }
    for (size_t i = 0; i < kSeen; ++i) write(head, steps[i]);
    for (size_t i = steps.size() - kSeen; i < steps.size(); ++i) write(tail, steps[i]);
    return shortened(head, kLongestPath / 2) + " ... " + shortened(tail, kLongestPath / 2);
}

Roots::Roots(nb::handle roots) : roots_(nb::borrow(roots)) {
    if (!PyUnicode_Check(roots.ptr()) && !PyTuple_Check(roots.ptr()))
        fail(PyExc_TypeError, "the root must be a str or a tuple, got %U.", short_repr(roots).ptr());
}

std::string Roots::path(const Steps &steps) const {
    if (!roots_.is_valid()) return path_text(steps);
    if (PyUnicode_Check(roots_.ptr())) return path_text(steps, text_of(roots_).c_str());
    const Py_ssize_t child = steps.empty() ? -1 : PyLong_AsSsize_t(steps[0].entry.ptr());
    if (child < 0 || child >= PyTuple_GET_SIZE(roots_.ptr())) {
        PyErr_Clear();
        return path_text(steps);
    }
    return path_text({steps.begin() + 1, steps.end()}, text_of(PyTuple_GET_ITEM(roots_.ptr(), child)).c_str());
}

void rethrow_at(const std::string &path, const char *doing) {
    try {
        throw;
    } catch (const Complaint &complaint) {
        std::string text = shortened(complaint.text(), kLongestText);
        if (text.starts_with('.')) text = path + text;  // about an attribute of what is there
        else if (!path.empty()) text += "\n  at " + path;
        PyErr_SetString(complaint.type(), text.c_str());
        throw nb::python_error();
    } catch (nb::python_error &error) {
        // The note is a courtesy: where it can't be added, the exception goes on without it.
        if (!path.empty()) add_note(nb::borrow(error.value()), std::string("raised while ") + doing + " " + path);
        PyErr_Clear();
        throw;
    }
}

void set_python_error() {
    try {
        throw;
    } catch (nb::python_error &error) {
        error.restore();
    } catch (const Complaint &complaint) {
        PyErr_SetString(complaint.type(), shortened(complaint.text(), kLongestText).c_str());
    } catch (const std::bad_alloc &) {
        PyErr_NoMemory();
    } catch (const std::exception &error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
}

}  // namespace pydag
