// SPDX-License-Identifier: BSL-1.0
// Registers benchmarks as <workload>/<competitor>; bench/run makes its table from these names.
#pragma once

#include "meter.hpp"

#include <benchmark/benchmark.h>

#include <string>

namespace bench {

// `workload(meter)` does a fixed amount of work once, and returns whether its result was right. The
// command line decides how often it is repeated.
template <class Workload>
void enroll(const std::string& name, Workload workload, int threads = 1)
{
    benchmark::RegisterBenchmark(name.c_str(),
                                 [=](benchmark::State& state) {
                                     meter measured(threads);
                                     for ([[maybe_unused]] auto _ : state) {
                                         if (!workload(measured))
                                             state.SkipWithError("wrong result");
                                         state.SetIterationTime(measured.seconds());
                                     }
                                     state.counters["ns"] = measured.nanoseconds();
                                     state.counters["allocs"] = measured.allocations();
                                 })
        ->Iterations(1)
        ->UseManualTime();
}

// Registers a benchmark whose result is a number of bytes.
template <class Measure>
void enroll_bytes(const std::string& name, Measure measure)
{
    benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
        double bytes = 0;
        for ([[maybe_unused]] auto _ : state)
            bytes = measure();
        state.counters["bytes"] = bytes;
    })->Iterations(1);
}

} // namespace bench
