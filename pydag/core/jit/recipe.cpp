// SPDX-License-Identifier: Apache-2.0
#include "jit/recipe.h"

#include "base/constants.h"
#include "jit/ref_contents.h"
#include "spec/spec_key.h"

#include <algorithm>

namespace pydag {
namespace {

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

// Removes a key that a dict has, or had until another thread removed it.
inline void drop_from_dict(nb::handle dict, nb::handle key) {
#ifdef Py_GIL_DISABLED
    checked(PyDict_Pop(dict.ptr(), key.ptr(), nullptr));
#else
    checked(PyDict_DelItem(dict.ptr(), key.ptr()));
#endif
}

}  // namespace

FlatCall &flat_call_of(nb::handle object) {
    if (!FlatCallBox::check(object)) fail(PyExc_TypeError, "expected a FlatCall, got %U.", short_repr(object).ptr());
    return FlatCallBox::of(object);
}

// Null if there are none. Python code can find the dict through the garbage collector, and put anything into it.
nb::object recipes_for(const FlatCall &call, nb::handle spec_key) {
    nb::object found = find_in_dict(call.recipes, spec_key);
    if (!found.is_valid() || !PyTuple_CheckExact(found.ptr())) return nb::object();
    PyObject *const *const items = &PyTuple_GET_ITEM(found.ptr(), 0);
    const auto is_recipe = [](PyObject *item) { return item && RecipeBox::check(item); };
    const bool are_recipes = std::all_of(items, items + PyTuple_GET_SIZE(found.ptr()), is_recipe);
    return are_recipes ? found : nb::object();
}

nb::object make_recipe(Recipe recipe) {
    require_one_each(recipe.static_positions, recipe.statics);
    require_one_each(recipe.checked_positions, recipe.classes);
    if (recipe.is_spread && (recipe.function.is_none() || recipe.donated || !recipe.refs.empty()))
        fail(PyExc_TypeError, "a function of spread leaves takes none that are donated, and no refs.");
    if (recipe.has_extras() && !recipe.kept) fail(PyExc_TypeError, "a recipe with extra results says what is kept.");
    recipe.types = nb::borrow<nb::tuple>(constants.no_items);
    return RecipeBox::make(std::move(recipe));
}

void add_recipe(nb::handle object, nb::handle spec_key, nb::handle added) {
    constexpr size_t kMost = 64;  // for one structure: static values in rotation
    FlatCall &call = flat_call_of(object);
    if (!RecipeBox::check(added)) fail(PyExc_TypeError, "expected a Recipe, got %U.", short_repr(added).ptr());
    Recipe &recipe = RecipeBox::of(added);
    const uint32_t num_leaves = spec_of_key(spec_key).structure().num_leaves;
    check_positions(recipe.static_positions, num_leaves);
    check_positions(recipe.checked_positions, num_leaves);
    check_positions(recipe.refs, num_leaves);
    if (!std::is_sorted(recipe.refs.begin(), recipe.refs.end()) ||
        !std::is_sorted(recipe.written.begin(), recipe.written.end()))
        fail(PyExc_ValueError, "the positions of refs must be in order");
    for (const uint32_t position : recipe.written)
        if (!std::binary_search(recipe.refs.begin(), recipe.refs.end(), position))
            fail(PyExc_IndexError, "leaf %u is no ref", unsigned{position});
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
    replace_shared(object, call.last, {});
}

void forget_recipes(nb::handle object, nb::handle spec_key) {
    FlatCall &call = flat_call_of(object);
    if (spec_key.is_none()) PyDict_Clear(call.recipes.ptr());
    else if (recipes_for(call, spec_key).is_valid()) drop_from_dict(call.recipes, spec_key);
    ++call.times_forgotten;
    replace_shared(object, call.last, {});
}

}  // namespace pydag
