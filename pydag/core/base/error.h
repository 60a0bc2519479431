// SPDX-License-Identifier: Apache-2.0
//
// Errors that say what, where and what to do.
//
// Code that a walk calls raises with `fail` and doesn't know where in the tree it is. The walk adds the path: to the
// text of the library's own errors, and as a note (PEP 678) to a user's exception.
#pragma once

#include "base/capi.h"

#include <exception>
#include <string>
#include <vector>

namespace pydag {

// An error of the library's own, before the path is known at which it occurred.
class Complaint : public std::exception {
public:
    Complaint(PyObject *type, std::string text) : type_(type), text_(std::move(text)) {}
    PyObject *type() const { return type_; }
    const std::string &text() const { return text_; }
    const char *what() const noexcept override { return text_.c_str(); }

private:
    PyObject *type_;  // a builtin or one of the two below: lives as long as the process
    std::string text_;
};

inline PyObject *cycle_error = nullptr;    // pydag.CycleError
inline PyObject *sharing_error = nullptr;  // pydag.SharingError
void make_exceptions(nb::module_ &module);

// Throws a Complaint; `format` is PyUnicode_FromFormat's.
[[noreturn]] void fail(PyObject *type, const char *format, ...);
// For a list or tuple that was found while somebody is still filling it (see `is_filled`).
[[noreturn]] void fail_unfilled();

// TypeError for a tree that is a module of PyTorch: it would be one leaf, without parameters. To be called where the
// whole tree is one leaf, and no predicate said so. Doesn't import PyTorch.
void refuse_torch_module(nb::handle tree);

// A short and shallow repr(): a shared structure can be exponentially long. Raises no Exception of the object's own.
nb::object short_repr(nb::handle object);

// The value in a record of the core (box.h); TypeError for any other object.
template <class Box>
auto &unboxed(nb::handle object) {
    if (!Box::check(object)) fail(PyExc_TypeError, "expected a %s, got %U.", Box::name(), short_repr(object).ptr());
    return Box::of(object);
}

std::string text_of(nb::handle str);

// One step of a path: `.entry` or `[entry]`.
struct Step {
    nb::object entry;
    bool is_attribute;
};
using Steps = std::vector<Step>;

// "tree['layers'][3].w"; the middle of a very long one is left out.
std::string path_text(const Steps &steps, const char *root = "tree");

// The user's name of a tree: a str, or a tuple of them, one for each child of a tuple, such as ("args", "kwargs").
// By default "tree".
class Roots {
public:
    Roots() = default;
    explicit Roots(nb::handle roots);  // TypeError for anything else
    std::string path(const Steps &steps) const;

private:
    nb::object roots_;
};

// Turns the exception in flight into a Python error that names a path. Call it in a catch block. `doing`: "flattening",
// "unflattening", ...
[[noreturn]] void rethrow_at(const std::string &path, const char *doing);

// The same with a function that makes the path. If it fails, the exception goes on without a path.
template <std::invocable MakePath>
[[noreturn]] void rethrow_at(MakePath make_path, const char *doing) {
    std::string text;
    try {
        text = make_path();
    } catch (const nb::python_error &error) {
        if (!error.matches(PyExc_Exception)) throw;
    } catch (const std::exception &) {
    }
    rethrow_at(text, doing);
}

// Adds a note to an exception, which gets each note once, and no more than twenty. May leave a Python error behind.
void add_note(nb::object exception, const std::string &note);

// Sets the Python error that stands for the exception in flight.
void set_python_error();

// Runs the body of a function that CPython calls: turns a C++ exception into a Python error and returns `on_error`.
template <class Result, class Body>
Result slot(Result on_error, Body &&body) {
    try {
        return body();
    } catch (...) {
        set_python_error();
        return on_error;
    }
}

}  // namespace pydag
