# SPDX-License-Identifier: BSL-1.0
# turnstile_carries_pch(<target>): the target makes a precompiled header for others.
#
# With clang and a compiler cache two things need care. CMake names the header to clang's front
# end, where the cache does not see it, so the options are given another form. And what clang makes
# refers to files of the clone by their absolute path: it must not come out of the cache, and its
# content, which differs from clone to clone, must not count. The cache takes a checksum beside it
# instead (CCACHE_PCH_EXTSUM, see dev), here of everything that the content depends on.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND NOT MSVC)
    # With the usual extension the driver would take an old one for the header itself.
    set(CMAKE_PCH_EXTENSION ".pre")
    set(CMAKE_CXX_COMPILE_OPTIONS_CREATE_PCH
        -Xclang -emit-pch -Xclang -fno-pch-timestamp -x c++-header -include <PCH_HEADER>)
    set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -fno-pch-timestamp -include-pch <PCH_FILE>)
endif()

function(turnstile_carries_pch target)
    if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR MSVC)
        return()
    endif()
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "")
    get_target_property(headers ${target} PRECOMPILE_HEADERS)
    string(SHA256 sum
        "${headers};${CMAKE_CXX_COMPILER_VERSION};${Boost_VERSION_STRING};${fmt_VERSION}")
    file(CONFIGURE CONTENT "${sum}\n"
        OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.pre.sum")
endfunction()
