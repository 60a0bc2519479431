// SPDX-License-Identifier: Apache-2.0
#include "jit/call.h"

#include "base/constants.h"
#include "base/hashed.h"
#include "base/tuples.h"
#include "jit/donation.h"
#include "jit/recipe.h"
#include "jit/ref_contents.h"
#include "jit/result.h"
#include "jit/running_key.h"
#include "jit/update_plan.h"
#include "spec/spec_key.h"
#include "structure/compare.h"
#include "structure/interchange.h"
#include "walks/flatten.h"

#include <algorithm>
#include <functional>

namespace pydag {
namespace {

// Whether the refs among the leaves are those that a recipe is for.
bool fits_refs(const Recipe::Positions &refs, const Leaves &leaves, const RefAccess &access) {
    size_t count = 0;
    for (size_t i = 0; i < leaves.size(); ++i) count += access.is_ref(leaves[i]);
    const auto is_one = [&](uint32_t position) { return access.is_ref(leaves[position]); };
    return count == refs.size() && std::all_of(refs.begin(), refs.end(), is_one) && (!count || access.may_read());
}

bool fits(const Recipe &recipe, const Leaves &leaves, nb::handle access) {
    if (recipe.num_leaves != leaves.size()) [[unlikely]]
        return false;
    PyObject *const *const statics = &PyTuple_GET_ITEM(recipe.statics.ptr(), 0);
    PyObject *const *const classes = &PyTuple_GET_ITEM(recipe.classes.ptr(), 0);
    for (size_t i = 0; i < recipe.static_positions.size(); ++i)
        if (leaves[recipe.static_positions[i]] != statics[i]) return false;
    for (size_t i = 0; i < recipe.checked_positions.size(); ++i)
        if (as_object(Py_TYPE(leaves[recipe.checked_positions[i]])) != classes[i]) return false;
    return access.is_none() || fits_refs(recipe.refs, leaves, RefAccessBox::of(access.ptr()));
}

nb::object leaves_at(const Leaves &leaves, const Recipe::Positions &positions) {
    nb::object tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(positions.size())));
    for (size_t i = 0; i < positions.size(); ++i)
        PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), incref(leaves[positions[i]]));
    return tuple;
}

nb::object donated_of(const Recipe &recipe, const Leaves &leaves) {
    nb::object tag = recipe.tag;
    if (!recipe.donated) return tag;
    const bool is_apart = recipe.copy.is_none() || !recipe.kept;
    return tuple_of(std::move(tag), is_apart
                                        ? leaves_at(leaves, *recipe.donated)
                                        : donated_apart(leaves.data(), *recipe.donated, *recipe.kept, recipe.copy));
}

// Whether a function has returned the result itself.
bool is_result_itself(nb::handle returned, nb::handle access) {
    if (PyTuple_CheckExact(returned.ptr()) || PyList_CheckExact(returned.ptr())) return true;
    return !access.is_none() && RefAccessBox::of(access.ptr()).is_array(returned.ptr());
}

nb::object built(nb::handle result, const std::function<nb::object()> &given, nb::handle access) {
    if (!holds_refs(result)) return build_result(result);
    return fill_result(result, given(), access.is_none() ? access : nb::handle(RefAccessBox::of(access.ptr()).new_ref));
}

// The same of what a function has returned that may update its arguments: they are updated once all is built.
nb::object finished(nb::handle returned, const std::function<nb::object()> &given, nb::handle access, nb::handle args,
                    nb::handle kwargs) {
    if (!UpdatedBox::check(returned)) return built(returned, given, access);
    const nb::object result = UpdatedBox::of(returned).result;
    nb::object found = built(result, given, access);
    return update_arguments(returned, tuple_of(nb::borrow(args), nb::borrow(kwargs)), std::move(found));
}

// Passes the leaves one by one, which JAX handles faster than a list of them.
nb::object call_spread(const Recipe &recipe, const Leaves &leaves) {
    Buffer<PyObject *, 40> arguments;
    arguments.push(recipe.key.ptr());
    if (!recipe.kept)
        for (size_t i = 0; i < leaves.size(); ++i) arguments.push(leaves[i]);
    else
        for (const uint32_t position : *recipe.kept) arguments.push(leaves[position]);
    return call_array(recipe.function, arguments.data(), arguments.size());
}

// Passes the contents of refs, and writes the new ones.
nb::object call_with_extras(PyObject *box, const FlatCall &flat, Leaves &leaves, nb::handle args, nb::handle kwargs) {
    Recipe &recipe = RecipeBox::of(box);
    const nb::object access = flat.access;
    RefContents contents(recipe.refs);
    if (!recipe.refs.empty()) {
        nb::tuple types = shared_copy(box, recipe.types);
        const bool are_read = contents.read(leaves, RefAccessBox::of(access.ptr()), recipe.has_devices, types);
        replace_shared(nb::handle(box), recipe.types, std::move(types));
        if (!are_read || contents.is_held_elsewhere(recipe.written)) return nb::borrow(Py_NotImplemented);
        contents.exchange(leaves);
    }
    const nb::object donated = donated_of(recipe, leaves), kept = leaves_at(leaves, *recipe.kept);
    const nb::object pair = call(recipe.function, recipe.key, donated, kept);
    const nb::object result = nb::borrow(item_of(pair, 0));
    contents.write(recipe.written, item_of(pair, 1));
    contents.exchange(leaves);
    return finished(result, [&] { return leaves.take_list(); }, access, args, kwargs);
}

// Calls the function as the first recipe says that fits, and builds what it returns.
nb::object follow(nb::handle recipes, const FlatCall &flat, Leaves &leaves, nb::handle args, nb::handle kwargs) {
    const nb::object function = flat.function, access = flat.access;
    const auto count = static_cast<size_t>(PyTuple_GET_SIZE(recipes.ptr()));
    for (size_t i = 0; i < count; ++i) {
        PyObject *const box = PyTuple_GET_ITEM(recipes.ptr(), i);
        const Recipe &recipe = RecipeBox::of(box);
        if (!fits(recipe, leaves, access)) continue;
        note_call(recipe.key.ptr());
        const RunningKey running(recipe.key.ptr());
        if (recipe.has_extras()) return call_with_extras(box, flat, leaves, args, kwargs);
        if (recipe.is_spread) {
            const nb::object returned = call_spread(recipe, leaves);
            if (is_result_itself(returned, access)) return returned;
            return finished(returned, [&] { return leaves.take_list(); }, access, args, kwargs);
        }
        const nb::object donated = donated_of(recipe, leaves);
        const nb::object kept = recipe.kept ? leaves_at(leaves, *recipe.kept) : leaves.take_list();
        const nb::object result = call(function, recipe.key, donated, kept);
        return finished(result, [&] { return recipe.kept ? leaves.take_list() : kept; }, access, args, kwargs);
    }
    return nb::borrow(Py_NotImplemented);
}

// Whether what nodes say now is what they said when the structure was made, for whoever compiled for it.
bool say_the_same(const Structure &structure, const OtherRefs &others) {
    return std::all_of(others.begin(), others.end(), [&](const OtherRef &other) {
        const nb::object before = nb::borrow(structure.all_refs()[other.index]);
        return equal_refs(Role::kAuxData, before.ptr(), other.ref.ptr()) &&
               are_interchangeable(before.ptr(), other.ref.ptr());
    });
}

// Flattens a tree that has the structure that was called last into `leaves`. False if it has another one; `answers` has
// then what its nodes were asked.
bool flatten_as_last(const FlatCall::Last &last, nb::handle tree, const FlattenOptions &options, Leaves &leaves,
                     NodeAnswers &answers) {
    if (!last.spec.is_valid() || last.generation != cache_generation() || last.setting != options.setting())
        return false;
    const nb::object spec = last.spec;  // owned, since a call within this one may replace `last`
    const Structure &structure = nb::inst_ptr<Spec>(spec)->structure_or_empty();
    if (!last.must_ask) return flatten_known(structure, tree.ptr(), options, leaves, nullptr);
    OtherRefs others;
    if (!flatten_asking(structure, tree.ptr(), options, leaves, nullptr, answers, others)) return false;
    if (say_the_same(structure, others)) return true;
    leaves.drop_to(0);
    return false;
}

// Calls the function with a tree whose structure need not be that of the last call.
nb::object call_any(nb::handle flat_call, nb::handle tree, const FlattenOptions &options, NodeAnswers &answers,
                    nb::handle args, nb::handle kwargs) {
    FlatCall &call = FlatCallBox::of(flat_call);
    const uint64_t generation = cache_generation(), times_forgotten = call.times_forgotten;
    Flattened parts(tree, options, nullptr, answers.empty() ? nullptr : &answers);
    nb::object spec = parts.take_spec();
    const nb::object recipes = recipes_for(call, SpecKeyBox::make(spec));
    if (!recipes.is_valid()) return nb::borrow(Py_NotImplemented);
    // It is followed from now on, even if this call had to take the tree apart: the cache may keep no structure with
    // objects of the user's, and would forget it with this spec.
    if (nb::inst_ptr<Spec>(spec)->is_in_cache())
        replace_shared(flat_call, call.last,
                       {std::move(spec), recipes, generation, options.setting(), times_forgotten, parts.must_ask()});
    return follow(recipes, call, parts.leaves(), args, kwargs);
}

}  // namespace

nb::object make_flat_call(nb::handle function, nb::handle namespace_, nb::handle identity, nb::handle access) {
    if (!access.is_none() && !RefAccessBox::check(access))
        fail(PyExc_TypeError, "expected a RefAccess, got %U.", short_repr(access).ptr());
    FlattenOptions::in(namespace_, nullptr, identity.ptr());  // checks them
    return FlatCallBox::make(nb::borrow(function), nb::borrow(namespace_), nb::borrow(identity), checked(PyDict_New()),
                             nb::borrow(access));
}

nb::object call_flat(nb::handle object, nb::handle args, nb::handle kwargs) {
    const FlatCall &call = flat_call_of(object);
    FlattenOptions options = FlattenOptions::in(call.namespace_, nullptr, call.identity.ptr());
    options.roots = Roots(constants.argument_names);
    const nb::object tree = tuple_of(nb::borrow(args), nb::borrow(kwargs));
    Leaves leaves;
    NodeAnswers answers;
    if constexpr (kFreeThreaded) {
        const FlatCall::Last last = shared_copy(object, call.last);
        const bool holds = last.times_forgotten == call.times_forgotten;
        if (holds && flatten_as_last(last, tree, options, leaves, answers))
            return follow(last.recipes, call, leaves, args, kwargs);
    } else {
        const nb::object recipes = call.last.recipes;
        if (flatten_as_last(call.last, tree, options, leaves, answers))
            return follow(recipes, call, leaves, args, kwargs);
    }
    return call_any(object, tree, options, answers, args, kwargs);
}

void make_jit_call_types() {
    RecipeBox::ready("pydag._core.Recipe", "How the leaves of a structure are handed to a compiled function.");
    RefAccessBox::ready("pydag._core.RefAccess", "How the contents of JAX's refs are read and written.");
    FlatCallBox::ready("pydag._core.FlatCall", "A compiled function that takes flat leaves.");
}

}  // namespace pydag
