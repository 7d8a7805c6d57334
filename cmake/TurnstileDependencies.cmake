# SPDX-License-Identifier: BSL-1.0
# Boost (headers only), fmt and threads. A parent project may bring its own targets.
set(TURNSTILE_BOOST_MINIMUM 1.81)

if(NOT TARGET Boost::headers)
    if(POLICY CMP0167)
        cmake_policy(SET CMP0167 NEW)
    endif()
    find_package(Boost ${TURNSTILE_BOOST_MINIMUM} QUIET)
    if(NOT Boost_FOUND)
        # Search again without a version, to report the version that is installed.
        set(_found "no Boost was found")
        find_package(Boost QUIET)
        if(Boost_VERSION_STRING)
            set(_found "found Boost ${Boost_VERSION_STRING} in ${Boost_INCLUDE_DIRS}")
        elseif(Boost_VERSION)
            set(_found "found Boost ${Boost_VERSION} in ${Boost_DIR}")
        endif()
        message(FATAL_ERROR
            "Turnstile needs Boost ${TURNSTILE_BOOST_MINIMUM} or newer, but ${_found}. "
            "On Debian 12 install libboost1.81-dev; elsewhere set BOOST_ROOT to a newer Boost.")
    endif()
    if(PROJECT_IS_TOP_LEVEL)
        message(STATUS "Boost ${Boost_VERSION_STRING} in ${Boost_INCLUDE_DIRS}")
    endif()
endif()

if(NOT TARGET fmt::fmt)
    find_package(fmt QUIET)
    if(NOT fmt_FOUND)
        message(FATAL_ERROR
            "Turnstile needs fmt, which was not found. On Debian install libfmt-dev; "
            "elsewhere set fmt_ROOT to where it is installed.")
    endif()
endif()

# The header-only form is for a standard library other than the one that fmt was compiled with.
set(turnstile_fmt fmt::fmt)
if(TURNSTILE_FMT_HEADER_ONLY)
    set(turnstile_fmt fmt::fmt-header-only)
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
