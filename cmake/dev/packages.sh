# shellcheck shell=bash
# SPDX-License-Identifier: BSL-1.0
# Sourced by ./dev: installs Debian packages that are missing, never removing one, and unpacks
# Boosts into the build tree, with package lists of their own, so that nothing on the system
# changes.

declare -A why=(
    [g++]="the compiler"
    [cmake]="configures the build"
    [ninja-build]="runs the build"
    [libboost1.81-dev]="Boost.Asio"
    [libboost-test1.81-dev]="the tests are written with Boost.Test"
    [libboost-context1.81-dev]="the tests of yield_context need Boost.Context"
    [libfmt-dev]="formatting"
    [libbenchmark-dev]="the benchmarks are written with Google Benchmark"
    [python3]="checks the code in the documentation, and makes the table of the benchmarks"
    [valgrind]="counts instructions in the tests"
    [clang]="the second compiler"
    [clang-19]="the compiler for libc++"
    [libclang-rt-dev]="the sanitizers of clang"
    [clang-format]="checks the formatting"
    [clang-tidy]="checks the code"
    [shellcheck]="checks the shell scripts"
    [pkg-config]="one of the ways to use the library"
    [ccache]="makes the second build of the same code quick; not needed"
)

# Packages that are there for their program: it may as well come from somewhere else.
declare -A program=(
    [cmake]=cmake [ninja-build]=ninja [python3]=python3 [valgrind]=valgrind [clang]=clang++
    [clang-19]=clang++-19
    [clang-format]=clang-format [clang-tidy]=clang-tidy [shellcheck]=shellcheck
    [pkg-config]=pkg-config [ccache]=ccache
)

is_installed() {
    if [[ $1 == g++ ]]; then
        [[ -n ${CXX:-} ]] || command -v c++ >/dev/null
    elif [[ -n ${program[$1]:-} ]]; then
        command -v "${program[$1]}" >/dev/null
    else
        [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
    fi
}

is_debian_12() {
    [[ -r /etc/os-release ]] && (
        # shellcheck source=/dev/null
        . /etc/os-release
        [[ ${ID:-} == debian && ${VERSION_ID:-} == 12 ]]
    )
}

can_be_root() { ((EUID == 0)) || command -v sudo >/dev/null; }
as_root() {
    if ((EUID == 0)); then
        "$@"
    else
        sudo "$@"
    fi
}

# need <package...>: installs those that are missing, and never removes one.
need() {
    local package missing=() boost=()
    if ! is_debian_12; then
        say "This is not Debian 12, so nothing is installed. Needed are (names as in Debian):"
        for package in "$@"; do say "    $package: ${why[$package]}"; done
        say "with Boost 1.81 or newer and CMake 3.25 or newer. Going on with what is there."
        return 0
    fi
    for package in "$@"; do
        case $package in
            libboost*) boost+=("$package") ;;
        esac
        is_installed "$package" || missing+=("$package")
    done
    [[ ${TURNSTILE_CCACHE:-1} != 0 ]] || without ccache
    # Somebody's own Boost is used as it is.
    if [[ -n ${BOOST_ROOT:-} ]]; then
        without 'libboost*'
    elif ((${#boost[@]} > 0)) && [[ -n ${TURNSTILE_UNPACK_BOOST:-} || -e $unpacked_boost/complete ]]; then
        without 'libboost*'
        unpack_boost
    fi
    ((${#missing[@]} > 0)) || return 0

    say "Missing packages:"
    for package in "${missing[@]}"; do say "    $package: ${why[$package]}"; done
    if ! can_be_root; then
        say "This is not root, and there is no sudo, so nothing is installed. As root:"
        say "    $(quoted apt-get install --no-remove --no-install-recommends "${missing[@]}")"
        [[ " ${missing[*]}" != *" libboost"* ]] || say "(Boost needs no root with TURNSTILE_UNPACK_BOOST=1.)"
        say "Going on with what is there."
        return 0
    fi
    step "Update the package lists" as_root apt-get update
    can_install ccache || without ccache
    ((${#missing[@]} > 0)) || return 0
    if [[ " ${missing[*]}" == *" libboost"* ]] && ! can_install "${missing[@]}"; then
        say "The Boost 1.81 packages do not go together with what is installed (another Boost?)."
        without 'libboost*'
        unpack_boost
        ((${#missing[@]} > 0)) || return 0
    fi
    step "Install ${missing[*]}" as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-remove --no-install-recommends "${missing[@]}"
}

# without <pattern>: takes packages out of need's list of missing ones.
without() {
    local package rest=()
    for package in "${missing[@]}"; do
        # shellcheck disable=SC2053 # a pattern
        [[ $package == $1 ]] || rest+=("$package")
    done
    missing=("${rest[@]}")
}

can_install() {
    apt-get install --simulate --no-remove --no-install-recommends "$@" >/dev/null 2>&1
}

# Boost 1.81 in the build tree, for machines where its packages cannot be installed.
unpacked_boost="$PWD/build/deps/boost-1.81"
unpack_boost() {
    local root=$unpacked_boost
    if [[ ! -e $root/complete ]]; then
        say "Boost 1.81 is unpacked into build/deps instead; nothing on the system changes."
        rm -rf "$root"
        mkdir -p "$root"
        step "Download Boost 1.81" in_folder "$root" apt-get -o APT::Sandbox::User=root download \
            libboost1.81-dev libboost-test1.81-dev libboost-test1.81.0 \
            libboost-context1.81-dev libboost-context1.81.0
        step "Unpack Boost 1.81" unpack "$root"
        touch "$root/complete"
    fi
    export BOOST_ROOT="$root/usr"
}

# libc++ 19 in the build tree, because its packages replace those of other versions. Where it is
# installed, or this is not Debian 12, that of the compiler is used. Sets ${libcxx_flags}, which
# are for cmake.
libcxx_flags=()
use_libcxx() {
    local root="$PWD/build/deps/libcxx-19"
    if is_installed libc++-19-dev || ! is_debian_12; then
        return 0
    fi
    if [[ ! -e $root/complete ]]; then
        rm -rf "$root"
        mkdir -p "$root"
        apt-cache show libc++-19-dev >/dev/null 2>&1 || ! can_be_root ||
            step "Update the package lists" as_root apt-get update
        step "Download libc++ 19" in_folder "$root" apt-get -o APT::Sandbox::User=root download \
            libc++-19-dev libc++1-19 libc++abi-19-dev libc++abi1-19 libunwind-19 libunwind-19-dev
        step "Unpack libc++ 19" unpack "$root"
        touch "$root/complete"
    fi
    local llvm="$root/usr/lib/llvm-19"
    # shellcheck disable=SC2034 # used by ./dev
    libcxx_flags=(
        "-DCMAKE_CXX_FLAGS=-stdlib++-isystem $llvm/include/c++/v1"
        "-DCMAKE_EXE_LINKER_FLAGS=-stdlib=libc++ -L$llvm/lib -Wl,-rpath,$llvm/lib"
    )
}

in_folder() { (cd "$1" && "${@:2}"); }

unpack() {
    local package
    for package in "$1"/*.deb; do
        dpkg -x "$package" "$1"
        rm "$package"
    done
}

# What a build needs, and what the tests need.
# shellcheck disable=SC2034 # used by ./dev
build_tools=(g++ cmake ninja-build libboost1.81-dev libfmt-dev ccache)
# shellcheck disable=SC2034
test_tools=("${build_tools[@]}" libboost-test1.81-dev libboost-context1.81-dev valgrind
    python3)

# The address of the Debian archive this machine uses.
archive() {
    local codename address
    # shellcheck source=/dev/null
    codename=$(. /etc/os-release && say "${VERSION_CODENAME:-}")
    # shellcheck disable=SC2016 # apt-get expands it
    address=$(apt-get indextargets --format '$(REPO_URI)' \
        'Origin: Debian' "Codename: $codename" 'Created-By: Packages' 2>/dev/null | head -n 1) || true
    if [[ -z $address ]]; then
        # No package lists yet: what would be fetched?
        address=$(apt-get update --print-uris 2>/dev/null |
            sed -n "s#^'\(.*\)/dists/$codename/InRelease'.*#\1#p" | head -n 1) || true
    fi
    say "${address%/}"
}

# fetch_boost <suite> <version> <root>: the headers of a Boost, with package lists of
# their own, so that nothing on the system changes.
fetch_boost() {
    local suite=$1 version=$2 root=$3 address trust=''
    local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    address=$(archive)
    [[ -n $address ]] || die "no Debian archive in this machine's apt configuration"
    if [[ -r $keyring ]]; then
        trust="[signed-by=$keyring] "
    else
        say "Without $keyring, signatures are checked with the keys that apt trusts in general."
    fi

    local apt="$PWD/build/compat/apt-$suite"
    rm -rf "$apt" "$root"
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$root"
    say "deb $trust$address $suite main" >"$apt/sources.list"
    local private=(
        -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache"
        -o Acquire::Languages=none -o APT::Update::Error-Mode=any -o APT::Sandbox::User=root
    )
    step "Package lists of Debian $suite" apt-get "${private[@]}" update
    apt-cache "${private[@]}" show "libboost$version-dev" >/dev/null 2>&1 ||
        die "Debian $suite has no libboost$version-dev any more. It has:
$(apt-cache "${private[@]}" pkgnames libboost1. | grep -E '^libboost1\.[0-9]+-dev$')"
    step "Download Boost $version" in_folder "$root" \
        apt-get "${private[@]}" download "libboost$version-dev"
    step "Unpack Boost $version" unpack "$root"
    touch "$root/complete"
    rm -rf "$apt"
}
