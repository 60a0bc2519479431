// SPDX-License-Identifier: Apache-2.0
//
// The kinds of node, and what each keeps in a structure. What a kind *means* stands in children.h
// (how to open one) and build.cpp (how to build one); the table here is what everything else
// needs to know.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pydag {

// The numbers are part of the pickle format: never renumber. Up to kStructSequence they are
// optree's, whose PyTreeKind `PyDagSpec.kind` returns.
enum class Kind : uint8_t {
    kCustom = 0,
    kLeaf = 1,
    kNone = 2,
    kTuple = 3,
    kList = 4,
    kDict = 5,
    kNamedTuple = 6,
    kOrderedDict = 7,
    kDefaultDict = 8,
    kDeque = 9,
    kStructSequence = 10,
    kFields = 11,  // register_fields
    kAlias = 12,   // a later occurrence of a shared object
};
inline constexpr size_t kNumKinds = 13;

// Where the entries of a node's children come from.
enum class Entries : uint8_t { kIndex, kKeys, kCustom };

struct KindTraits {
    const char *name;
    uint8_t num_refs;  // how many references a node of this kind keeps in its structure
    Entries entries;
    bool has_identity;         // false: a value, opened anew at every occurrence
    bool is_mapping;           // dict, OrderedDict and defaultdict match one another
    const char *open, *close;  // around the children in a spec's text
};

// References, in order:
//   Custom          registration, aux_data, entries (a tuple or None)
//   Dict            keys
//   OrderedDict     keys
//   DefaultDict     keys, default_factory
//   NamedTuple      type
//   StructSequence  type
//   Deque           maxlen
//   Fields          registration, keys (the names of the data fields), values of the meta fields
inline constexpr KindTraits kKindTraits[kNumKinds] = {
    {"custom type", 3, Entries::kCustom, true, false, "CustomTreeNode(", "])"},
    {"leaf", 0, Entries::kIndex, true, false, "*", ""},
    {"None", 0, Entries::kIndex, false, false, "None", ""},
    {"tuple", 0, Entries::kIndex, false, false, "(", ")"},
    {"list", 0, Entries::kIndex, true, false, "[", "]"},
    {"dict", 1, Entries::kKeys, true, true, "{", "}"},
    {"namedtuple", 1, Entries::kIndex, false, false, "(", ")"},
    {"OrderedDict", 1, Entries::kKeys, true, true, "OrderedDict({", "})"},
    {"defaultdict", 2, Entries::kKeys, true, true, "defaultdict(", "})"},
    {"deque", 1, Entries::kIndex, true, false, "deque([", "])"},
    {"struct sequence", 1, Entries::kIndex, false, false, "(", ")"},
    {"fields", 3, Entries::kKeys, true, false, "(", ")"},
    {"alias", 0, Entries::kIndex, false, false, "*", ""},
};

constexpr const KindTraits &traits(Kind kind) { return kKindTraits[static_cast<size_t>(kind)]; }

}  // namespace pydag
