# SPDX-License-Identifier: BSL-1.0
# The version is written in project(VERSION), for the preprocessor in version.hpp, and for vcpkg in
# the two vcpkg.json. All of them must agree.
set(_header "${PROJECT_SOURCE_DIR}/include/turnstile/version.hpp")
foreach(_part MAJOR MINOR PATCH)
    file(STRINGS "${_header}" _line REGEX "^#define TURNSTILE_VERSION_${_part} [0-9]+$")
    string(REGEX MATCH "[0-9]+$" _number "${_line}")
    if(NOT _number STREQUAL PROJECT_VERSION_${_part})
        message(FATAL_ERROR
            "TURNSTILE_VERSION_${_part} is '${_number}' in include/turnstile/version.hpp, "
            "but the version in CMakeLists.txt is ${PROJECT_VERSION}.")
    endif()
endforeach()
file(STRINGS "${_header}" _line REGEX "^#define TURNSTILE_VERSION_STRING \"${PROJECT_VERSION}\"$")
if(NOT _line)
    message(FATAL_ERROR
        "TURNSTILE_VERSION_STRING in include/turnstile/version.hpp is not \"${PROJECT_VERSION}\".")
endif()
foreach(_manifest vcpkg.json cmake/vcpkg/turnstile/vcpkg.json)
    if(NOT EXISTS "${PROJECT_SOURCE_DIR}/${_manifest}")
        continue() # a package of the sources need not contain it
    endif()
    file(READ "${PROJECT_SOURCE_DIR}/${_manifest}" _text)
    string(JSON _number GET "${_text}" "version-semver")
    if(NOT _number STREQUAL PROJECT_VERSION)
        message(FATAL_ERROR
            "The version in ${_manifest} is '${_number}', "
            "but the version in CMakeLists.txt is ${PROJECT_VERSION}.")
    endif()
endforeach()
unset(_header)
unset(_line)
unset(_manifest)
unset(_number)
unset(_text)
