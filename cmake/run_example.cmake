# SPDX-License-Identifier: BSL-1.0
# Runs PROGRAM and compares what it prints with the file EXPECTED, exactly.
#   cmake -D PROGRAM=... -D EXPECTED=... -D ACTUAL=... -P run_example.cmake
# ACTUAL is where the output is written.
execute_process(
    COMMAND "${PROGRAM}"
    OUTPUT_FILE "${ACTUAL}"
    RESULT_VARIABLE result
    TIMEOUT 300)
if(NOT result EQUAL 0)
    file(READ "${ACTUAL}" output)
    message("${output}")
    message(FATAL_ERROR "${PROGRAM} failed: ${result}")
endif()

file(READ "${EXPECTED}" expected HEX)
file(READ "${ACTUAL}" actual HEX)
if(NOT expected STREQUAL actual)
    find_program(DIFF diff)
    if(DIFF)
        execute_process(COMMAND "${DIFF}" -u "${EXPECTED}" "${ACTUAL}" OUTPUT_VARIABLE difference)
    else()
        file(READ "${ACTUAL}" difference)
    endif()
    message("${difference}\nIf the new output is right: cp '${ACTUAL}' '${EXPECTED}'\n")
    message(FATAL_ERROR "The output of ${PROGRAM} is not what ${EXPECTED} says.")
endif()
