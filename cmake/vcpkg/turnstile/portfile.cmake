# SPDX-License-Identifier: BSL-1.0
# An overlay port, which builds the source tree that it is a part of:
#   vcpkg install turnstile --overlay-ports=<this clone>/cmake/vcpkg
# vcpkg caches a port by the files in this folder. After a change elsewhere in the tree, install
# with --no-binarycaching.
cmake_path(SET SOURCE_PATH NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../../..")

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        -DTURNSTILE_BUILD_TESTS=OFF
        -DTURNSTILE_BUILD_EXAMPLES=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/turnstile)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
