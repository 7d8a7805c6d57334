# SPDX-License-Identifier: BSL-1.0
# cmake -DPROGRAM=<test_core> -P check_watchdog.cmake: checks that the watchdog ends a case that hangs,
# and names it.
set(case watchdog/a_case_that_hangs)
set(ENV{TURNSTILE_WATCHDOG} 1)
execute_process(COMMAND "${PROGRAM}" --color_output=no --run_test=${case}
    TIMEOUT 60 RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
message("${output}")
if(NOT result EQUAL 124)
    message(FATAL_ERROR "It ended with '${result}' instead of 124.")
endif()
if(NOT output MATCHES "FAILED ${case}: it hangs, and was ended after 1 s")
    message(FATAL_ERROR "It does not say which case hangs.")
endif()
