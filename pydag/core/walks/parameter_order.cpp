// SPDX-License-Identifier: Apache-2.0
#include "walks/parameter_order.h"

#include "structure/node_refs.h"

#include <algorithm>

namespace pydag {
namespace {

// The function of Python's that an `__init__` is, or that decorators with `functools.wraps` have around them; null if
// it is something else.
nb::object innermost(nb::object function) {
    constexpr int kMostDecorators = 100;
    for (int i = 0; i < kMostDecorators; ++i) {
        nb::object wrapped = nb::getattr(function, "__wrapped__", nb::none());
        if (wrapped.is_none()) break;
        function = std::move(wrapped);
    }
    return PyFunction_Check(function.ptr()) ? function : nb::object();
}

// The names of the parameters of `__init__`, as they are declared.
std::vector<nb::object> parameters_of(nb::handle type) {
    const nb::object init = innermost(nb::getattr(type, "__init__"));
    std::vector<nb::object> found;
    if (!init.is_valid()) return found;
    const nb::object code = init.attr("__code__"), names = code.attr("co_varnames");
    const auto number = [&](const char *name) { return nb::cast<size_t>(code.attr(name)); };
    const size_t positional = number("co_argcount"), by_name = number("co_kwonlyargcount"), flags = number("co_flags");
    const auto add = [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) found.push_back(names[i]);
    };
    const size_t behind = positional + by_name, has_rest = (flags & CO_VARARGS) != 0;
    add(1, positional);  // without `self`
    add(behind, behind + has_rest);
    add(positional, behind);
    add(behind + has_rest, behind + has_rest + ((flags & CO_VARKEYWORDS) != 0));
    return found;
}

}  // namespace

nb::object ParameterOrder::arrange(Kind kind, PyObject *const *refs, nb::object results) {
    if (!is_registered(kind) || is_callback(kind)) return results;
    const FieldsRefs fields{refs};
    const Registration &registration = fields.registration();
    if (!registration.data.is_none() || registration.is_foreign || fields.keys().size() < 2) return results;
    const auto [found, is_new] = orders_.try_emplace({fields.registration_box(), fields.keys_box()});
    if (is_new) found->second = order_of(registration.type, fields.keys());
    const Order &order = found->second;
    if (order.empty()) return results;
    Buffer<PyObject *, 16> given;
    PyObject **const items = &PyTuple_GET_ITEM(results.ptr(), 0);
    std::copy_n(items, order.size(), given.extend(order.size()));
    for (size_t i = 0; i < order.size(); ++i) items[i] = given[order[i]];
    return results;
}

ParameterOrder::Order ParameterOrder::order_of(nb::handle type, const Keys &names) {
    Order order;
    for (const nb::object &parameter : parameters_of(type))
        for (uint32_t i = 0; i < names.size(); ++i)
            if (is_same_name(parameter.ptr(), names.key(i))) order.push_back(i);
    return order.size() == names.size() && !std::ranges::is_sorted(order) ? order : Order();
}

}  // namespace pydag
