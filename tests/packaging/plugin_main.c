/*
 * plugin_main.c - runs the main() of a client that is itself a shared object (argv[1]), found by
 * dlopen(). SPDX-License-Identifier: BSD-3-Clause
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    int (*client_main)(int, char **) = NULL;

    if (plugin != NULL)
        *(void **)&client_main = dlsym(plugin, "client_main");
    if (client_main == NULL) {
        fprintf(stderr, "plugin_main: %s\n", dlerror());
        return 1;
    }
    return client_main(argc, argv);
}
