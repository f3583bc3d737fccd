/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_symbol.c - see aq_symbol.h.
 *
 * The dynamic linker knows exported functions only, and a program exports none unless it was linked
 * with -rdynamic. The file's own symbol table has them all, static ones too, unless it was
 * stripped. Nothing is allocated: the file is mapped, searched, and unmapped.
 */
#include "base/aq_symbol.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct aq_symbol_file {
    const char *bytes;
    size_t size;
};

static bool aq_symbol_in(const struct aq_symbol_file *file, uint64_t offset, uint64_t size)
{
    return offset <= file->size && size <= file->size - offset;
}

/* finds the function that contains `at` in one symbol table; false if there is none */
static bool aq_symbol_look(const struct aq_symbol_file *file, const ElfW(Shdr) * table,
                           const ElfW(Shdr) * strings, uintptr_t at, struct aq_line *line)
{
    const ElfW(Sym) *symbol = (const void *)(file->bytes + table->sh_offset);

    for (size_t i = 0; i < table->sh_size / sizeof(*symbol); i++, symbol++) {
        const char *name;

        if ((symbol->st_info & 15) != STT_FUNC || at < symbol->st_value
            || at - symbol->st_value >= symbol->st_size || symbol->st_name >= strings->sh_size)
            continue;
        name = file->bytes + strings->sh_offset + symbol->st_name;
        if (memchr(name, '\0', strings->sh_size - symbol->st_name) == NULL)
            return false;
        aq_line_put(line, name);
        aq_line_put(line, "+0x");
        aq_line_put_number(line, at - symbol->st_value, 16);
        return true;
    }
    return false;
}

static bool aq_symbol_of_file(const struct aq_symbol_file *file, uintptr_t address, uintptr_t base,
                              struct aq_line *line)
{
    const ElfW(Ehdr) *head = (const void *)file->bytes;
    const ElfW(Shdr) * section;

    if (file->size < sizeof(*head) || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0
        || head->e_shentsize != sizeof(*section)
        || !aq_symbol_in(file, head->e_shoff, (uint64_t)head->e_shnum * sizeof(*section)))
        return false;
    section = (const void *)(file->bytes + head->e_shoff);
    for (unsigned i = 0; i < head->e_shnum; i++) {
        const ElfW(Shdr) * strings;

        if (section[i].sh_type != SHT_SYMTAB || section[i].sh_link >= head->e_shnum)
            continue;
        strings = &section[section[i].sh_link];
        if (!aq_symbol_in(file, section[i].sh_offset, section[i].sh_size)
            || !aq_symbol_in(file, strings->sh_offset, strings->sh_size))
            continue;
        if (aq_symbol_look(file, &section[i], strings,
                           head->e_type == ET_DYN ? address - base : address, line))
            return true;
    }
    return false;
}

static bool aq_symbol_from_table(const char *path, uintptr_t address, uintptr_t base,
                                 struct aq_line *line)
{
    struct aq_symbol_file file = { NULL, 0 };
    struct stat info;
    bool found = false;
    void *map;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    if (fstat(fd, &info) == 0 && info.st_size > 0) {
        map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map != MAP_FAILED) {
            file.bytes = map;
            file.size = (size_t)info.st_size;
            found = aq_symbol_of_file(&file, address, base, line);
            munmap(map, file.size);
        }
    }
    close(fd);
    return found;
}

void aq_symbol_put(struct aq_line *line, const void *address)
{
    Dl_info info;
    uintptr_t at = (uintptr_t)address;

    if (dladdr(address, &info) == 0) {
        aq_line_put(line, "??");
        return;
    }
    if (info.dli_sname != NULL) {
        aq_line_put(line, info.dli_sname);
        aq_line_put(line, "+0x");
        aq_line_put_number(line, at - (uintptr_t)info.dli_saddr, 16);
    } else {
        /* the program's own name may be relative to a folder that it is no longer in */
        const char *path = access(info.dli_fname, R_OK) == 0 ? info.dli_fname : "/proc/self/exe";

        if (!aq_symbol_from_table(path, at, (uintptr_t)info.dli_fbase, line))
            aq_line_put(line, "??");
    }
    aq_line_put(line, " (");
    aq_line_put(line, info.dli_fname);
    aq_line_put(line, "+0x");
    aq_line_put_number(line, at - (uintptr_t)info.dli_fbase, 16);
    aq_line_put(line, ")");
}

const char *aq_symbol_file(const void *address)
{
    const char *slash;
    Dl_info info;

    if (dladdr(address, &info) == 0 || info.dli_fname == NULL)
        return "";
    slash = strrchr(info.dli_fname, '/');
    return slash != NULL ? slash + 1 : info.dli_fname;
}
