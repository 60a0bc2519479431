// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "bind/bind.h"

NB_MODULE(_core, module) {
    module.attr("__doc__") = "The compiled core of pydag. Its public names are those of the package.";
    // Registered classes, and so whatever they refer to, live until the process ends: a report of
    // what is alive then would blame the user. The tests turn it on.
    nb::set_leak_warnings(false);
    module.def("set_leak_warnings", nb::set_leak_warnings, nb::sig("def set_leak_warnings(value: bool, /) -> None"));
    nb::register_exception_translator([](const std::exception_ptr &error, void *) {
        try {
            std::rethrow_exception(error);
        } catch (const pydag::Complaint &) {
            pydag::set_python_error();
        }
    });
    pydag::make_exceptions(module);
    pydag::bind_registry(module);
    pydag::bind_spec(module);
    pydag::bind_operations(module);
    pydag::bind_folds(module);
}
