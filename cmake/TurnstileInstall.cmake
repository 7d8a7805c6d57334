# SPDX-License-Identifier: BSL-1.0
# Headers, the library, a package for find_package(turnstile) and a .pc file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/turnstile")

install(TARGETS turnstile EXPORT turnstile-targets
    RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/turnstile"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    FILES_MATCHING PATTERN "*.hpp")
install(EXPORT turnstile-targets
    NAMESPACE turnstile::
    DESTINATION "${_package_dir}")

configure_package_config_file(
    "${CMAKE_CURRENT_LIST_DIR}/turnstile-config.cmake.in"
    "${PROJECT_BINARY_DIR}/turnstile-config.cmake"
    INSTALL_DESTINATION "${_package_dir}"
    NO_SET_AND_CHECK_MACRO)
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(_compatibility SameMinorVersion)
else()
    set(_compatibility SameMajorVersion)
endif()
write_basic_package_version_file(
    "${PROJECT_BINARY_DIR}/turnstile-config-version.cmake"
    COMPATIBILITY ${_compatibility})
install(FILES
    "${PROJECT_BINARY_DIR}/turnstile-config.cmake"
    "${PROJECT_BINARY_DIR}/turnstile-config-version.cmake"
    DESTINATION "${_package_dir}")

# The .pc file finds its prefix from where it lies, so the tree may be moved and
# `cmake --install --prefix` is honoured.
set(_pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(IS_ABSOLUTE "${_pc_dir}")
    set(_pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
    file(RELATIVE_PATH _up "/prefix/${_pc_dir}" "/prefix")
    string(REGEX REPLACE "/$" "" _up "${_up}")
    set(_pc_prefix "\${pcfiledir}/${_up}")
endif()
set(_pc_libdir "\${prefix}")
cmake_path(APPEND _pc_libdir "${CMAKE_INSTALL_LIBDIR}")
set(_pc_includedir "\${prefix}")
cmake_path(APPEND _pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
get_target_property(_type turnstile TYPE)
set(_pc_cflags "")
if(_type STREQUAL "SHARED_LIBRARY")
    set(_pc_cflags " -DTURNSTILE_SHARED")
endif()
configure_file("${CMAKE_CURRENT_LIST_DIR}/turnstile.pc.in" "${PROJECT_BINARY_DIR}/turnstile.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/turnstile.pc" DESTINATION "${_pc_dir}")
