# clients.sh - what the packaging tests share: what it means that a client ran, or that a command was refused.
# SPDX-License-Identifier: BSD-3-Clause

# right N COMMAND...: the client ran on N ranks and every rank was right.
right()
{
    ranks=$1
    shift
    "$@" >"$work/run" 2>&1 || { cat "$work/run"; return 1; }
    cat "$work/run"
    [ "$(grep -c "of $ranks right" "$work/run")" = "$ranks" ]
}

# refused WORD COMMAND...: the command fails, and says WORD.
refused()
{
    word=$1
    shift
    if "$@" >"$work/refused" 2>&1; then echo "it worked, and should not"; return 1; fi
    cat "$work/refused"
    grep -q -- "$word" "$work/refused"
}

# clients_folder: a folder outside source and build, with the client as C and as C++; becomes the current one.
clients_folder()
{
    mkdir "$work/client" && cd "$work/client" || exit 1
    cp "$AQ_SRC/tests/packaging/client.c" "$AQ_SRC/tests/packaging/plugin_main.c" .
    cp client.c client.cc
}
