# SPDX-License-Identifier: BSL-1.0
# TURNSTILE_SANITIZE=address,undefined or thread: flags for every target of this build, never for
# the users of an installed Turnstile. The run-time options of the sanitizers are in
# TURNSTILE_TEST_ENVIRONMENT, the environment of every test.
set(TURNSTILE_TEST_ENVIRONMENT "")

if(TURNSTILE_SANITIZE)
    if(NOT TURNSTILE_SANITIZE MATCHES "^(address|undefined|address,undefined|thread)$")
        message(FATAL_ERROR
            "TURNSTILE_SANITIZE is '${TURNSTILE_SANITIZE}'; it may be 'address', 'undefined', "
            "'address,undefined' or 'thread'.")
    endif()

    add_compile_options(
        -fsanitize=${TURNSTILE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${TURNSTILE_SANITIZE})
    add_compile_definitions(TURNSTILE_SANITIZED=1)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        # This warning has false positives in instrumented code.
        add_compile_options(-Wno-maybe-uninitialized)
    elseif(TURNSTILE_SANITIZE MATCHES "undefined")
        # clang 14 cannot put the data of this sanitizer in front of a coroutine.
        add_compile_options(-fno-sanitize=function)
    endif()

    if(TURNSTILE_SANITIZE MATCHES "address")
        list(APPEND TURNSTILE_TEST_ENVIRONMENT
            "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:check_initialization_order=1")
    endif()
    if(TURNSTILE_SANITIZE MATCHES "undefined")
        list(APPEND TURNSTILE_TEST_ENVIRONMENT
            "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1")
    endif()
    if(TURNSTILE_SANITIZE STREQUAL "thread")
        add_compile_definitions(TURNSTILE_SANITIZED_THREAD=1)
        if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
            # Asio uses std::atomic_thread_fence, which GCC warns about here.
            add_compile_options(-Wno-tsan)
        endif()
        list(APPEND TURNSTILE_TEST_ENVIRONMENT
            "TSAN_OPTIONS=suppressions=${CMAKE_CURRENT_LIST_DIR}/tsan.supp:halt_on_error=1:second_deadlock_stack=1")
    endif()
endif()
