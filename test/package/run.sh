#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Builds and runs the consumer program in one of the ways a project can use Turnstile:
#   run.sh <way> <build folder> [<jobs>]
# Ways: find_package-static, find_package-shared, pkg-config-static, pkg-config-shared,
# add_subdirectory, FetchContent. ./dev package runs them all.
set -euo pipefail

way=$1
mkdir -p "$2"
work=$(cd "$2" && pwd)
jobs=${3:-$(nproc)}
consumer=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(cd "$consumer/../.." && pwd)

launcher=${CMAKE_CXX_COMPILER_LAUNCHER:-}
configure() { cmake -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher" "$@"; }
build() { cmake --build "$1" --parallel "$jobs"; }

# install_library static|shared: into a prefix, which is then moved, since an installed
# library must not depend on where it was built for.
install_library() {
    local shared=OFF
    [[ $1 == static ]] || shared=ON
    configure -S "$source" -B "$work/library-$1" \
        -DBUILD_SHARED_LIBS=$shared -DTURNSTILE_BUILD_TESTS=OFF -DTURNSTILE_BUILD_EXAMPLES=OFF \
        -DTURNSTILE_WERROR=ON
    build "$work/library-$1"
    rm -rf "$work/first-$1" "$prefix"
    cmake --install "$work/library-$1" --prefix "$work/first-$1"
    mv "$work/first-$1" "$prefix"
}

# build_consumer <options...>: with CMake.
build_consumer() {
    rm -rf "${work:?}/$way"
    configure -S "$consumer" -B "$work/$way" "$@"
    build "$work/$way"
    "$work/$way/consumer"
}

case $way in
    find_package-static | find_package-shared)
        prefix="$work/prefix-${way#find_package-}"
        install_library "${way#find_package-}"
        # What a shared library has forgotten to export, only a program that uses it can tell.
        program=main
        [[ $way != *-shared ]] || program=everything
        build_consumer -DWAY=find_package -DCMAKE_PREFIX_PATH="$prefix" -DPROGRAM=$program
        grep -q "^turnstile_DIR:PATH=$prefix/" "$work/$way/CMakeCache.txt"
        ;;
    pkg-config-static | pkg-config-shared)
        prefix="$work/prefix-${way#pkg-config-}"
        install_library "${way#pkg-config-}"
        folder=$(dirname "$(find "$prefix" -name turnstile.pc)")
        export PKG_CONFIG_PATH=$folder
        read -ra compile < <(printf '%s ' "$launcher" "${CXX:-c++}" && pkg-config --cflags turnstile)
        read -ra libraries < <(pkg-config --libs turnstile)
        boost=()
        [[ -z ${BOOST_ROOT:-} ]] || boost=(-isystem "$BOOST_ROOT/include")
        mkdir -p "$work/$way"
        object="$work/$way/main.o"
        "${compile[@]}" -std=c++20 "${boost[@]}" -c "$consumer/main.cpp" -o "$object"
        "${CXX:-c++}" "$object" -o "$work/$way/consumer" "${libraries[@]}"
        LD_LIBRARY_PATH=$(dirname "$folder") "$work/$way/consumer"
        ;;
    add_subdirectory | FetchContent)
        build_consumer -DWAY="$way" -DTURNSTILE_SOURCE="$source"
        ;;
    *)
        echo "run.sh: unknown way '$way'" >&2
        exit 2
        ;;
esac
