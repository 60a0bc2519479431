// SPDX-License-Identifier: Apache-2.0
#include "base/constants.h"
#include "base/error.h"
#include "base/threads.h"
#include "bind/bind.h"
#include "nodes/open.h"
#include "spec/cache.h"
#include "structure/listing.h"
#include "types/registry.h"

// NB_MODULE defines a function PyInit__core. Here it gets another name, because the PyInit__core below calls it.
#define PyInit__core init_by_nanobind
NB_MODULE(_core, module) {
    module.attr("__doc__") = "The compiled core of pydag. Its public names are those of the package.";
    // Registered classes, and so whatever they refer to, live until the process ends. nanobind would report
    // them as leaks, as if the user had made a mistake. The tests turn the report on.
    nb::set_leak_warnings(false);
    nb::register_exception_translator([](const std::exception_ptr &error, void *) {
        try {
            std::rethrow_exception(error);
        } catch (const pydag::Complaint &) {
            pydag::set_python_error();
        }
    });
    pydag::make_mutexes();
    pydag::make_constants();
    pydag::make_kind_names();
    pydag::make_exceptions(module);
    pydag::add_builtin_classes();
    pydag::tell_when_types_are_forgotten(pydag::forget_specs);
    pydag::detail::try_out_ordered_dicts();
    pydag::bind_registry(module);
    pydag::bind_stand_ins(module);
    pydag::bind_spec(module);
    pydag::bind_records(module);
    pydag::bind_spec_methods(module);
    pydag::bind_broadcast(module);
    pydag::bind_operations(module);
    pydag::bind_jit_call(module);
    pydag::bind_publish(module);
}
#undef PyInit__core

namespace {

// The constants, classes and caches of the core belong to one interpreter, the first that imports it.
int check_interpreter(PyObject *) {
    static int64_t first = -1;
    const int64_t id = PyInterpreterState_GetID(PyInterpreterState_Get());
    if (id < 0) return -1;
    if (first < 0) first = id;
    if (id == first) return 0;
    PyErr_SetString(PyExc_ImportError,
                    "pydag can be used in one interpreter of a process only, and another one has imported it already. "
                    "Use it there, or start a process instead (multiprocessing, ProcessPoolExecutor).");
    return -1;
}

}  // namespace

// Adds a step before nanobind's own execution step, which replaces data that the module shares with other
// interpreters. The check can't be made in this function itself, since Python runs this function in the main
// interpreter, whichever interpreter imports the module.
extern "C" NB_EXPORT PyObject *PyInit__core() {
    constexpr size_t kMost = 8;
    static PyModuleDef_Slot slots[kMost] = {{Py_mod_exec, reinterpret_cast<void *>(check_interpreter)}};
    PyObject *const object = init_by_nanobind();
    if (!object || !PyObject_TypeCheck(object, &PyModuleDef_Type)) return object;
    auto *const definition = reinterpret_cast<PyModuleDef *>(object);
    if (definition->m_slots == slots) return object;
    size_t count = 1;
    for (const PyModuleDef_Slot *slot = definition->m_slots; slot->slot != 0; ++slot) {
        if (count == kMost - 1) {  // GCOVR_EXCL_START: another nanobind
            PyErr_SetString(PyExc_SystemError, "nanobind's module has more slots than expected");
            return nullptr;
        }
        // GCOVR_EXCL_STOP
        slots[count++] = *slot;
    }
    definition->m_slots = slots;
    return object;
}
