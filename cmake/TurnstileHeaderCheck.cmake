# SPDX-License-Identifier: BSL-1.0
# turnstile_header_check: every header, public and private, compiled alone as its own
# translation unit, so each includes what it uses. With TURNSTILE_CHECK_EXAMPLES also every
# example, where they are not built anyway. Not part of `all`.
#
# Objects rather than -fsyntax-only, whose result no compiler cache keeps.
#
# Without TURNSTILE_PRIVATE_HEADERS_ALONE all private headers are compiled in one, which takes
# half the time: for further runs, with another Boost.
#
# With TURNSTILE_CHECK_QUICKLY only public ones, and Asio and fmt are precompiled, which takes a
# third of the time: for further runs, with another standard library.
file(GLOB_RECURSE _headers CONFIGURE_DEPENDS
    RELATIVE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/include/turnstile/*.hpp")

set(_sources "")
set(_private "")
if(TURNSTILE_CHECK_QUICKLY)
    list(FILTER _headers EXCLUDE REGEX "/detail/")
endif()
foreach(header IN LISTS _headers)
    if(header MATCHES "/detail/" AND NOT TURNSTILE_PRIVATE_HEADERS_ALONE)
        string(APPEND _private "#include <${header}>\n")
        continue()
    endif()
    set(_source "${PROJECT_BINARY_DIR}/header_check/${header}.cpp")
    file(CONFIGURE OUTPUT "${_source}" @ONLY CONTENT "#include <@header@>\n")
    list(APPEND _sources "${_source}")
endforeach()
if(_private)
    set(_source "${PROJECT_BINARY_DIR}/header_check/private.cpp")
    file(CONFIGURE OUTPUT "${_source}" @ONLY CONTENT "@_private@")
    list(APPEND _sources "${_source}")
endif()

set(_examples "")
if(TURNSTILE_CHECK_EXAMPLES)
    file(GLOB _examples CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/example/*.cpp")
endif()

add_library(turnstile_header_check OBJECT EXCLUDE_FROM_ALL ${_sources} ${_examples})
target_link_libraries(turnstile_header_check PRIVATE turnstile::turnstile)
turnstile_own_target(turnstile_header_check)
target_compile_options(turnstile_header_check PRIVATE -O0 -g0)
if(TURNSTILE_CHECK_QUICKLY)
    target_precompile_headers(turnstile_header_check PRIVATE <boost/asio.hpp> <fmt/format.h>)
endif()
