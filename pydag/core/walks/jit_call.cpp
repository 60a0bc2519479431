// SPDX-License-Identifier: Apache-2.0
#include "walks/jit_call.h"

#include "base/constants.h"
#include "base/tuples.h"
#include "spec/spec_key.h"
#include "walks/flatten.h"
#include "walks/update_plan.h"

#include <algorithm>

namespace pydag {
namespace {

FlatCall &flat_call_of(nb::handle object) {
    if (!FlatCallBox::check(object)) fail(PyExc_TypeError, "expected a FlatCall, got %U.", short_repr(object).ptr());
    return FlatCallBox::of(object);
}

const Spec &spec_of_key(nb::handle object) {
    if (!SpecKeyBox::check(object)) fail(PyExc_TypeError, "expected a SpecKey, got %U.", short_repr(object).ptr());
    return spec_of(SpecKeyBox::of(object).spec);
}

// Checks that a structure has the leaves whose positions these are.
void check_positions(const Recipe::Positions &positions, uint32_t num_leaves) {
    for (const uint32_t position : positions)
        if (position >= num_leaves) fail(PyExc_IndexError, "there is no leaf %u", unsigned{position});
}

void require_one_each(const Recipe::Positions &positions, nb::handle values) {
    if (positions.size() == static_cast<size_t>(PyTuple_GET_SIZE(values.ptr()))) return;
    fail(PyExc_TypeError, "there are %zu positions for %U.", positions.size(), short_repr(values).ptr());
}

bool fits(const Recipe &recipe, const Leaves &leaves) {
    if (recipe.num_leaves != leaves.size()) [[unlikely]]
        return false;
    PyObject *const *const statics = &PyTuple_GET_ITEM(recipe.statics.ptr(), 0);
    PyObject *const *const classes = &PyTuple_GET_ITEM(recipe.classes.ptr(), 0);
    for (size_t i = 0; i < recipe.static_positions.size(); ++i)
        if (leaves[recipe.static_positions[i]] != statics[i]) return false;
    for (size_t i = 0; i < recipe.checked_positions.size(); ++i)
        if (as_object(Py_TYPE(leaves[recipe.checked_positions[i]])) != classes[i]) return false;
    return true;
}

nb::object leaves_at(const Leaves &leaves, const Recipe::Positions &positions) {
    nb::object tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(positions.size())));
    for (size_t i = 0; i < positions.size(); ++i)
        PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), incref(leaves[positions[i]]));
    return tuple;
}

// Calls the function as the first recipe says that fits, builds what it returns, and updates the arguments.
nb::object follow(nb::handle recipes, nb::handle function, Leaves &leaves, nb::handle arguments) {
    const auto count = static_cast<size_t>(PyTuple_GET_SIZE(recipes.ptr()));
    for (size_t i = 0; i < count; ++i) {
        const Recipe &recipe = RecipeBox::of(PyTuple_GET_ITEM(recipes.ptr(), i));
        if (!fits(recipe, leaves)) continue;
        nb::object donated = recipe.tag;
        if (recipe.donated) donated = tuple_of(std::move(donated), leaves_at(leaves, *recipe.donated));
        const nb::object kept = recipe.kept ? leaves_at(leaves, *recipe.kept) : leaves.take_list();
        return finish_call(call(function, recipe.key, donated, kept), arguments);
    }
    return nb::borrow(Py_NotImplemented);
}

Setting setting_of(const FlattenOptions &options) {
    return {options.space->id(), options.none_is_leaf, options.space_is_ordered};
}

// Flattens a tree that has the structure that was called last into `leaves`. False if it has another one.
bool flatten_as_last(const FlatCall::Last &last, nb::handle tree, const FlattenOptions &options, Leaves &leaves) {
    if (!last.spec.is_valid() || last.generation != cache_generation() || last.setting != setting_of(options))
        return false;
    const nb::object spec = last.spec;  // meanwhile another call may come last
    return flatten_known(nb::inst_ptr<Spec>(spec)->structure_or_empty(), tree.ptr(), options, leaves, nullptr);
}

// Null where there are none. Who found the dict through the collector may have put anything there.
nb::object recipes_for(const FlatCall &call, nb::handle spec_key) {
    nb::object found = nb::borrow(PyDict_GetItemWithError(call.recipes.ptr(), spec_key.ptr()));
    if (!found.is_valid() && PyErr_Occurred()) nb::raise_python_error();
    if (!found.is_valid() || !PyTuple_CheckExact(found.ptr())) return nb::object();
    PyObject *const *const items = &PyTuple_GET_ITEM(found.ptr(), 0);
    const auto is_recipe = [](PyObject *item) { return item && RecipeBox::check(item); };
    const bool are_recipes = std::all_of(items, items + PyTuple_GET_SIZE(found.ptr()), is_recipe);
    return are_recipes ? found : nb::object();
}

// Calls it with a tree of any structure.
nb::object call_any(FlatCall &call, nb::handle tree, const FlattenOptions &options) {
    const uint64_t generation = cache_generation();
    Flattened parts(tree, options);
    const bool is_known = parts.is_known();
    nb::object spec = parts.take_spec();
    const nb::object recipes = recipes_for(call, SpecKeyBox::make(spec));
    if (!recipes.is_valid()) return nb::borrow(Py_NotImplemented);
    if (is_known) call.last = {std::move(spec), recipes, generation, setting_of(options)};
    return follow(recipes, call.function, parts.leaves(), tree);
}

}  // namespace

nb::object make_flat_call(nb::handle function, nb::handle namespace_, nb::handle identity) {
    FlattenOptions::in(namespace_, nullptr, identity.ptr());  // checks them
    return FlatCallBox::make(nb::borrow(function), nb::borrow(namespace_), nb::borrow(identity), checked(PyDict_New()));
}

nb::object make_recipe(Recipe recipe) {
    require_one_each(recipe.static_positions, recipe.statics);
    require_one_each(recipe.checked_positions, recipe.classes);
    return RecipeBox::make(std::move(recipe));
}

void add_recipe(nb::handle object, nb::handle spec_key, nb::handle added) {
    constexpr size_t kMost = 4;  // for one structure: a flag or two that change from call to call
    FlatCall &call = flat_call_of(object);
    if (!RecipeBox::check(added)) fail(PyExc_TypeError, "expected a Recipe, got %U.", short_repr(added).ptr());
    Recipe &recipe = RecipeBox::of(added);
    const uint32_t num_leaves = spec_of_key(spec_key).structure().num_leaves;
    check_positions(recipe.static_positions, num_leaves);
    check_positions(recipe.checked_positions, num_leaves);
    if (recipe.donated) check_positions(*recipe.donated, num_leaves);
    if (recipe.kept) check_positions(*recipe.kept, num_leaves);
    recipe.num_leaves = num_leaves;
    RefBuffer<kMost> recipes;
    const nb::object before = recipes_for(call, spec_key);
    recipes.push_borrowed(added.ptr());
    for (size_t i = 0; before.is_valid() && i < static_cast<size_t>(PyTuple_GET_SIZE(before.ptr())); ++i) {
        PyObject *const other = PyTuple_GET_ITEM(before.ptr(), i);
        if (recipes.size() < kMost && !RecipeBox::of(other).key.is(recipe.key)) recipes.push_borrowed(other);
    }
    checked(PyDict_SetItem(call.recipes.ptr(), spec_key.ptr(), recipes.take_tuple().ptr()));
    call.last = {};
}

void forget_recipes(nb::handle object, nb::handle spec_key) {
    FlatCall &call = flat_call_of(object);
    const FlatCall::Last dropped = std::exchange(call.last, {});
    if (spec_key.is_none()) PyDict_Clear(call.recipes.ptr());
    else if (recipes_for(call, spec_key).is_valid()) checked(PyDict_DelItem(call.recipes.ptr(), spec_key.ptr()));
}

nb::object call_flat(nb::handle object, nb::handle args, nb::handle kwargs) {
    FlatCall &call = flat_call_of(object);
    FlattenOptions options = FlattenOptions::in(call.namespace_, nullptr, call.identity.ptr());
    options.root = nb::borrow(constants.argument_names);
    const nb::object tree = tuple_of(nb::borrow(args), nb::borrow(kwargs));
    Leaves leaves;
    const nb::object recipes = call.last.recipes;
    if (flatten_as_last(call.last, tree, options, leaves)) return follow(recipes, call.function, leaves, tree);
    return call_any(call, tree, options);
}

void make_jit_call_types() {
    RecipeBox::ready("pydag._core.Recipe", "How the leaves of a structure are handed to a compiled function.");
    FlatCallBox::ready("pydag._core.FlatCall", "A compiled function that takes flat leaves.");
}

}  // namespace pydag
