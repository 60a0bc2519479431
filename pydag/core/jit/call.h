// SPDX-License-Identifier: Apache-2.0
//
// The way into a compiled function and out of it again, without Python code between.
#pragma once

#include "base/box.h"
#include "spec/cache.h"
#include "walks/options.h"

#include <atomic>
#include <optional>
#include <vector>

namespace pydag {

// What a function was compiled for, and how the leaves of one structure are handed to it.
struct Recipe {
    using Positions = std::vector<uint32_t>;
    nb::object key;  // of what it was compiled for
    nb::object tag;  // belongs to the structure
    Positions static_positions;
    nb::tuple statics;                 // the static leaves, which must be these very objects
    std::optional<Positions> donated;  // without it, the tag alone is passed
    std::optional<Positions> kept;     // without it, all leaves are
    Positions checked_positions;       // of leaves that are traced or not according to their class
    nb::tuple classes;                 // of these leaves
    Positions refs;                    // of refs whose contents are passed; no other leaf is a ref
    Positions written;                 // of those whose new contents come back
    nb::object copy;                   // of a donated leaf that may stand at several places; None where none can
    nb::object function;               // takes contents or spread leaves; None: the function of the FlatCall
    bool has_devices;                  // whether there are several
    bool is_spread;                    // whether the function takes the kept leaves one by one, and no tag
    nb::tuple types;                   // of refs that came last, which needn't be looked at again
    size_t num_leaves = 0;             // of the structure
    auto python_refs() { return std::tie(key, tag, statics, classes, copy, function, types); }
    // Whether the function returns new contents of refs beside its result.
    bool has_extras() const { return !function.is_none() && !is_spread; }
};
using RecipeBox = Box<Recipe>;

// A compiled function that takes flat leaves, and its recipes.
struct FlatCall {
    // The structure that was called last. Most calls have it, so it is tried first.
    struct Last {
        nb::object spec, recipes;
        uint64_t generation = 0;  // of the cache of structures, when it was taken from there
        Setting setting;
        uint64_t times_forgotten = 0;  // when the recipes were looked up: another thread may have had them forgotten
        bool must_ask = false;         // whether the structure has nodes that must be asked
    };
    nb::object function;  // of JAX
    nb::object namespace_, identity;
    nb::object recipes;  // a dict: for the SpecKey of a structure a tuple of recipes, the newest first
    nb::object access;   // to refs, a RefAccess; None where there is none
    Last last;
    std::atomic<uint64_t> times_forgotten = 0;
    auto python_refs() { return std::tie(function, namespace_, identity, recipes, access, last.spec, last.recipes); }
};
static_assert(sizeof(FlatCall) == 5 * sizeof(nb::object) + sizeof(FlatCall::Last) + sizeof(uint64_t),
              "list it in python_refs()");
using FlatCallBox = Box<FlatCall>;

void make_jit_call_types();

nb::object make_flat_call(nb::handle function, nb::handle namespace_, nb::handle identity, nb::handle access);

// TypeError where the numbers of positions and of what stands there differ.
nb::object make_recipe(Recipe recipe);
// IndexError where the structure has too few leaves for the recipe. The last few for a structure are kept.
void add_recipe(nb::handle call, nb::handle spec_key, nb::handle recipe);
// `spec_key`: None for all of them.
void forget_recipes(nb::handle call, nb::handle spec_key);

// Calls the function with the leaves of the arguments, a tuple and a dict, as the recipe says that there
// is for their structure; and builds what it returns, see `build_result`. NotImplemented where there is none, or
// for other static leaves than these very objects, or for other classes of leaves. Extra results are written
// once the function has returned.
nb::object call_flat(nb::handle call, nb::handle args, nb::handle kwargs);

}  // namespace pydag
