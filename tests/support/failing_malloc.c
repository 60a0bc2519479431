// SPDX-License-Identifier: Apache-2.0
//
// To be preloaded: `malloc`, `calloc` and `realloc` of which chosen calls fail, where the core makes them.
// Those of the interpreter and of other libraries never fail; nor does C++'s `new`, for which nanobind's own tables,
// among others, have no answer.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#define MOST_RANGES 8

static char *range_begin[MOST_RANGES], *range_end[MOST_RANGES];
static int num_ranges;
static long calls_before_failure = -1; // -1: none fails

static int note_code(struct dl_phdr_info *library, size_t size, void *data) {
    (void)size, (void)data;
    if (!strstr(library->dlpi_name, "pydag/_core.")) return 0;
    for (int i = 0; i < library->dlpi_phnum && num_ranges < MOST_RANGES; ++i) {
        if (library->dlpi_phdr[i].p_type != PT_LOAD || !(library->dlpi_phdr[i].p_flags & PF_X)) continue;
        range_begin[num_ranges] = (char *)library->dlpi_addr + library->dlpi_phdr[i].p_vaddr;
        range_end[num_ranges] = range_begin[num_ranges] + library->dlpi_phdr[i].p_memsz;
        ++num_ranges;
    }
    return 0;
}

// To be called once the core is loaded.
void find_the_core(void) {
    num_ranges = 0;
    dl_iterate_phdr(note_code, NULL);
}

// The next call after so many others fails, and that one alone.
void fail_after(long calls) { calls_before_failure = calls; }

static int fails(char *caller) {
    if (calls_before_failure < 0) return 0;
    for (int i = 0; i < num_ranges; ++i)
        if (caller >= range_begin[i] && caller < range_end[i]) return calls_before_failure-- == 0;
    return 0;
}

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

void *malloc(size_t size) { return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}
void *realloc(void *memory, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, size);
}
