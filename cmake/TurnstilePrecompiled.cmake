# How clang makes and uses a precompiled header. CMake names the header to clang's front end,
# where a compiler cache does not see it: then another clone of the same code finds nothing in the
# cache, or a precompiled header that refers to files of the first clone.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND NOT MSVC)
    # With the usual extension the driver would take an old one for the header itself.
    set(CMAKE_PCH_EXTENSION ".pre")
    set(CMAKE_CXX_COMPILE_OPTIONS_CREATE_PCH
        -Xclang -emit-pch -Xclang -fno-pch-timestamp -x c++-header -include <PCH_HEADER>)
    set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -fno-pch-timestamp -include-pch <PCH_FILE>)
endif()
